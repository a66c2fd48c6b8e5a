"""What a page shows of the rows themselves: kept as it is, computed when it is asked for."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from isrlearn._shown import SAMPLE, UNNUMBERED, Head, Shown, show_rows
from isrlearn.estimators import ISR, ISRClassifier, default_isr, fold
from isrlearn.heads import SOLVED, LogisticHead
from isrlearn.leaderboard._methods import ISR_KEY, TWINS
from isrlearn.leaderboard._preparation import Preparation, prepare
from isrlearn.leaderboard._run import Outcome
from isrlearn.leaderboard._splits import Round
from isrlearn.metrics import GroupScores, group_scores
from isrlearn.selection import stratified_part
from isrlearn.subspace import Subspace
from isrlearn.typing import FloatArray, IntArray, LabelArray


@dataclass(frozen=True, eq=False, repr=False)
class Scene:
    """Rows, how they were divided and prepared, and a removal.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        All rows as they were given.
    y, environments : ndarray of shape (n,)
        Labels; environments, None where unknown.
    training, scored : ndarray of int
        Rows that were fitted on, and rows that are shown.
    held_out : bool
        Whether the rows that are shown were kept from the fit.
    names : tuple of str
        Of the features.
    preparation : Preparation
        What was done to them.
    with_units : bool
        Whether they are columns of a table.
    isr : transformer
        The removal; only its settings are used.
    after : Head
        The model, on prepared rows.
    before : Head or None
        The model to compare it with; None fits a plain logistic one.
    model : ISRClassifier or None
        The model itself, to fit its head without the removal; None where that was done.
    subspace : Subspace or None
        What was removed; None finds it again.
    n_scored : int or None
        How many rows the scored ones are a sample of; None for all.
    """

    X: FloatArray
    y: LabelArray
    environments: LabelArray
    training: IntArray
    scored: IntArray
    held_out: bool
    names: tuple[str, ...]
    preparation: Preparation
    with_units: bool
    isr: Any
    after: Head
    before: Head | None = None
    model: ISRClassifier | None = None
    subspace: Subspace | None = None
    n_scored: int | None = None

    def shown(self) -> Shown:
        """Return rows to show, with tests that are made for it on at most 20 000 rows."""
        rows = self.scored
        features = self.X[rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is in the diagnosis
            removed = self._removed()
            tested = self._tested()
        return show_rows(
            self.preparation.apply(features),
            self.y[rows],
            self.environments[rows],
            subspace=removed,
            before=self.plain(),
            after=self.after,
            features=np.where(np.isnan(features), self.preparation.fill, features),
            feature_names=self.names,
            tested=tested,
            places=rows if self.n_scored is None else np.full(len(rows), UNNUMBERED),
        )

    def _removed(self) -> Subspace:
        if self.subspace is not None:
            return self.subspace
        fitted = clone(self.isr).fit(*self._prepared(), environments=self._seen)
        found: Subspace = fitted.subspace_
        return found

    def same_head(self) -> Head | None:
        """Return the model's own head, fitted with nothing removed."""
        if self.model is None:
            return None
        same = clone(self.model).set_params(isr=ISR(0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same.fit(*self._prepared(), environments=self._seen)
        return Head(*fold(same))

    def plain(self) -> Head:
        """Return the model to compare with: the one given, or plain logistic regression."""
        if self.before is not None:
            return self.before
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X, y = self._prepared()
            model = LogisticHead(max_iter=1000, tol=SOLVED).fit(X, y)
        return Head(*fold(model))

    def scores(self, head: Head, classes: LabelArray) -> GroupScores:
        """Return the scores of a head on the rows that are shown.

        Parameters
        ----------
        head : Head
            On prepared rows.
        classes : ndarray of shape (k,)
            Sorted labels.
        """
        logits = self.preparation.apply(self.X[self.scored]) @ head.weight.T + head.bias
        two = logits.shape[1] == 1
        predicted = classes[(logits[:, 0] > 0).astype(int) if two else logits.argmax(axis=1)]
        environments = self.environments[self.scored]
        return group_scores(self.y[self.scored], predicted, environments=environments)

    @property
    def _seen(self) -> LabelArray:
        return self.environments[self.training]

    def _prepared(self) -> tuple[FloatArray, LabelArray]:
        return self.preparation.apply(self.X[self.training]), self.y[self.training]

    def _tested(self) -> Any:
        """Return a fit whose number of directions is found by tests, on features with names."""
        import pandas as pd

        rows = self._sample()
        plain = self._not_whitened()
        Z = plain.apply(self.X[rows])
        whole = plain.matrix.ndim == 1
        columns = self.names if whole else [f"component {j + 1}" for j in range(Z.shape[1])]
        finder = default_isr(Z.shape[1]).set_params(n_spurious="auto", random_state=0)
        table = pd.DataFrame(Z, columns=list(columns))
        try:
            return finder.fit(table, self.y[rows], environments=self.environments[rows])
        except ValueError:  # rows that no test can be made on: the page does without
            return None

    def _sample(self) -> IntArray:
        if len(self.training) <= SAMPLE:
            return self.training
        labels, seen = self.y[self.training], self.environments[self.training]
        share = SAMPLE / len(self.training)
        part = stratified_part(labels, seen, share, np.random.default_rng(0))
        return self.training[np.sort(part)]

    def _not_whitened(self) -> Preparation:
        if self.preparation.matrix.ndim == 1 or self.preparation.matrix.shape[0] > len(
            self.preparation.matrix.T
        ):
            return self.preparation
        impute = None if np.isnan(self.preparation.fill).all() else "median"
        return prepare(
            self.X[self.training],
            self.names,
            pca=len(self.names),
            impute=impute,
            with_units=self.with_units,
            whiten=False,
        )


class Table(NamedTuple):
    """Rows as they were given."""

    X: FloatArray
    y: LabelArray
    environments: LabelArray
    names: tuple[str, ...]
    with_units: bool


def scene_of(
    table: Table, part: Round, preparation: Preparation, outcomes: Sequence[Outcome]
) -> Scene | None:
    """Return the scene of one round of a comparison; None where ISR has no model there.

    Parameters
    ----------
    table : Table
        All rows.
    part : Round
        How they were divided.
    preparation : Preparation
        What was done to the features in this round.
    outcomes : sequence of Outcome
        Of all methods and rounds.
    """
    here = {o.key: o for o in outcomes if (o.name, o.seed) == (part.name, part.seed)}
    ours = here.get(ISR_KEY)
    if ours is None or ours.weight is None:
        return None
    plain = here.get("erm") or here[TWINS[ISR_KEY]]
    return Scene(
        X=table.X,
        y=table.y,
        environments=table.environments,
        training=part.training,
        scored=part.test,
        held_out=True,
        names=table.names,
        preparation=preparation,
        with_units=table.with_units,
        isr=ours.setting["isr"],
        after=_head(ours),
        before=_head(plain),
    )


def _head(outcome: Outcome) -> Head:
    return Head(np.atleast_2d(np.asarray(outcome.weight)), np.atleast_1d(np.asarray(outcome.bias)))
