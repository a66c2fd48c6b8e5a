"""What the public API computes, as numbers: ``python tests/laws/golden.py`` writes golden.json.

The file is the memory of a reconstruction: what changes in it is a change that a user can see, and
the commit that changes it says why.
"""

import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import LinearSVC

from isrlearn import (
    ISR,
    CellMoments,
    ChunkedRows,
    ISRClassifier,
    ISRCov,
    ISRMean,
    ISRRegressor,
    LogisticHead,
    compare,
    repair_head,
    select,
)
from isrlearn.baselines import (
    CORAL,
    DFR,
    ERM,
    IGA,
    INLP,
    LEACE,
    AdamERM,
    ANDMask,
    GroupDRO,
    GroupSubsampling,
    IRMv1,
    LastLayerIRM,
    LastLayerVREx,
    LinearProbe,
    Oracle,
    VREx,
    fit_trials,
    published_trials,
)
from isrlearn.datasets import load_penguins, make_linear_gaussian
from isrlearn.metrics import group_scores

FILE = Path(__file__).with_name("golden.json")
EXACT, SOLVED = 1e-8, 2e-4  # relative: of closed forms, and of what a solver ends near


def birds():
    """Real measurements: three species, three islands, not every species on every island."""
    return load_penguins()


def sites(n_features=8, n_classes=2, seed=5, dtype=np.float64):
    """Drawn rows of four environments that differ in two directions of mean and spread."""
    random = np.random.default_rng(seed)
    n = 900
    y, e = random.integers(n_classes, size=n), random.integers(4, size=n)
    Z = random.normal(size=(n, n_features))
    Z[:, 0] += 1.5 * e + (2.0 * e - 3) * (y - 0.5)
    Z[:, 1] *= 1 + e
    for c in range(1, n_classes):
        Z[:, 1 + c] += 1.5 * (y == c)
    mixing = random.normal(size=(n_features, n_features))
    return (Z @ mixing).astype(dtype), np.array(["no", "yes", "perhaps"])[y], e


def some_unknown(e, share=0.3):
    random = np.random.default_rng(1)
    return np.where(random.random(len(e)) < share, None, e.astype(object))


def in_chunks(X, y, e, w=None):
    parts = np.array_split(np.arange(len(y)), 7)
    return ChunkedRows.from_chunks([(X[p], y[p], e[p], None if w is None else w[p]) for p in parts])


def of_subspace(isr):
    found = isr.subspace_
    probes = np.cos(np.arange(2 * found.n_features)).reshape(2, -1)
    return {"rank": found.rank, "project": found.project(probes), "spectrum": found.spectrum[:5]}


def of_choice(isr):
    choice = isr.rank_choice_
    return of_subspace(isr) | {"p_values": choice.p_values}


def of_head(model):
    return {"coef": model.coef_, "intercept": model.intercept_}


def of_classifier(model, X):
    found = of_head(model) | {"rank": model.n_spurious_, "decision": model.decision_function(X[:5])}
    if hasattr(model, "predict_proba"):
        found["proba"] = model.predict_proba(X[:5])
    return found


def transformers():
    for data, (X, y, e) in {
        "penguins": birds(),
        "sites": sites(),
        "three": sites(n_classes=3),
        "single": sites(dtype=np.float32),
        "wide": sites(n_features=40),
    }.items():
        label = np.unique(y)[0]
        w, part = np.random.default_rng(2).uniform(0.2, 3, len(y)), some_unknown(e)
        for isr in (
            ISRMean(1),
            ISRMean(2),
            ISRMean(1, condition_on=label),
            ISRCov(1),
            ISRCov(1, scale=0.25),
            ISRCov(2, pairs="distinct"),
            ISR(1),
            ISR(2),
        ):
            key = f"{data} {isr}"
            yield key, EXACT, lambda i=isr, X=X, y=y, e=e: of_subspace(i.fit(X, y, environments=e))
            yield (
                f"{key} weights, unknown",
                EXACT,
                lambda i=isr, X=X, y=y, e=part, w=w: of_subspace(
                    i.fit(X, y, environments=e, sample_weight=w)
                ),
            )
            yield (
                f"{key} chunks",
                EXACT,
                lambda i=isr, r=(X, y, e, w): of_subspace(i.fit(in_chunks(*r))),
            )
        for isr in (
            ISR(random_state=3),
            ISR(random_state=3, rank_test="moments"),
            ISRMean("auto", random_state=3),
            ISRCov("auto", random_state=3),
        ):
            key = f"{data} {isr}"
            yield key, EXACT, lambda i=isr, X=X, y=y, e=e: of_choice(i.fit(X, y, environments=e))
            yield f"{key} chunks", EXACT, lambda i=isr, r=(X, y, e): of_choice(i.fit(in_chunks(*r)))

            def streamed(i=isr, X=X, y=y, e=e):
                for p in np.array_split(np.arange(len(y)), 9):
                    i.partial_fit(X[p], y[p], environments=e[p])
                return of_choice(i)

            yield f"{key} stream", EXACT, streamed


def moments():
    X, y, e = sites()
    w = np.random.default_rng(2).uniform(0.2, 3, len(y))
    found = CellMoments.from_rows(X, y, e, w)
    yield (
        "moments",
        EXACT,
        lambda: {"weights": found.weights, "means": found.means, "cov": found.covariances()},
    )


def classifiers():
    heads = {
        "logistic": LogisticRegression(C=0.5, max_iter=10_000, tol=1e-8),
        "LogisticHead": LogisticHead(C=0.1),
        "ridge": RidgeClassifier(),
        "discriminant": LinearDiscriminantAnalysis(solver="lsqr"),
        "svc": LinearSVC(tol=1e-10, max_iter=1_000_000),
        "GroupDRO": GroupDRO(),
    }
    for data, (X, y, e) in {
        "penguins": birds(),
        "sites": sites(),
        "three": sites(n_classes=3),
        "single": sites(dtype=np.float32),
        "wide": sites(n_features=40),
    }.items():
        w, part = np.random.default_rng(2).uniform(0.2, 3, len(y)), some_unknown(e)
        own = ISR(random_state=0) if X.shape[1] <= 20 else ISRMean(1)
        default = ISRClassifier(own)
        yield (
            f"{data} default",
            SOLVED,
            lambda m=default, X=X, y=y, e=e: of_classifier(m.fit(X, y, environments=e), X),
        )
        yield (
            f"{data} default unknown, weights",
            SOLVED,
            lambda m=default, X=X, y=y, e=part, w=w: of_classifier(
                m.fit(X, y, environments=e, sample_weight=w), X
            ),
        )
        yield (
            f"{data} default chunks",
            SOLVED,
            lambda m=default, X=X, r=(X, y, e): of_classifier(m.fit(in_chunks(*r)), X),
        )
        for name, head in heads.items():
            if data == "wide" and name in ("GroupDRO", "discriminant"):
                continue  # slow, and singular within scikit-learn
            model = ISRClassifier(ISRMean(1), head)
            if name == "discriminant":
                model.set_params(group_weight=None)
            yield (
                f"{data} {name}",
                EXACT if name in ("ridge", "discriminant") else SOLVED,
                lambda m=model, X=X, y=y, e=e: of_classifier(m.fit(X, y, environments=e), X),
            )
            if name in ("logistic", "LogisticHead", "ridge", "discriminant"):
                yield (
                    f"{data} {name} chunks",
                    EXACT if name in ("ridge", "discriminant") else SOLVED,
                    lambda m=model, X=X, r=(X, y, e): of_classifier(m.fit(in_chunks(*r)), X),
                )
        for scheme in ("balanced", "class", None):
            model = ISRClassifier(
                ISRMean(1), LogisticRegression(tol=1e-8, max_iter=10_000), group_weight=scheme
            )
            yield (
                f"{data} group_weight={scheme}",
                SOLVED,
                lambda m=model, X=X, y=y, e=part: of_classifier(m.fit(X, y, environments=e), X),
            )


def regressors():
    X, _, e = sites()
    y = X @ np.linspace(-1, 1, X.shape[1]) + np.random.default_rng(4).normal(size=len(X)) + e
    w = np.random.default_rng(2).uniform(0.2, 3, len(y))
    for isr in (ISR(1), ISR(2), ISR(random_state=1)):
        yield (
            f"regressor {isr}",
            EXACT,
            lambda i=isr: (lambda m: of_head(m) | of_subspace(m))(
                ISRRegressor(i).fit(X, y, environments=e)
            ),
        )
        yield (
            f"regressor {isr} weights, unknown",
            EXACT,
            lambda i=isr: of_head(
                ISRRegressor(i).fit(X, y, environments=some_unknown(e), sample_weight=w)
            ),
        )


def rivals():
    own = {
        "ERM": ERM(),
        "LinearProbe": LinearProbe(),
        "LinearProbe balanced": LinearProbe(weight="balanced"),
        "LinearProbe group": LinearProbe(weight="group"),
        "GroupSubsampling": GroupSubsampling(random_state=0),
        "GroupDRO": GroupDRO(C=0.1),
        "DFR": DFR(random_state=0),
        "LEACE": LEACE(),
        "LEACE given class": LEACE(given_class=True),
        "INLP": INLP(n_iterations=2),
        "CORAL": CORAL(),
        "LastLayerIRM": LastLayerIRM(),
        "LastLayerVREx": LastLayerVREx(),
    }
    descending = {
        "AdamERM": AdamERM(n_steps=200, random_state=0),
        "IRMv1": IRMv1(n_steps=200, random_state=0),
        "IGA": IGA(n_steps=200, random_state=0),
        "ANDMask": ANDMask(n_steps=200, random_state=0),
        "VREx": VREx(n_steps=200, random_state=0),
    }
    for data, (X, y, e) in {"sites": sites(), "penguins": birds()}.items():
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        every = own | (descending if len(np.unique(y)) == 2 else {})
        for name, rival in every.items():
            for known, environments in (("", e), (" unknown", some_unknown(e))):
                yield (
                    f"{data} {name}{known}",
                    SOLVED,
                    lambda r=rival, X=X, y=y, e=environments: of_head(r.fit(X, y, environments=e)),
                )
    X, y, e = sites()
    yield "Oracle", SOLVED, lambda: of_head(Oracle(np.eye(8)[:1]).fit(X, y, environments=e))
    yield (
        "trials",
        SOLVED,
        lambda: {
            "weights": fit_trials("irmv1", X, y == "yes", e, published_trials("irmv1", 3), 100)
        },
    )


def decisions():
    X, y, e = birds()

    def chosen():
        found = select(X, y, environments=e, random_state=0)
        return {"score": found.score, "scores": found.scores, "coef": found.estimator.coef_}

    def compared():
        found = compare(
            X, y, environments=e, methods=["erm", "group-reweighted", "isr", "leace"], n_seeds=2
        )
        return {
            entry.key: [entry.average, entry.adjusted_average, *entry.worst_group]
            for entry in found.entries
        }

    def repaired():
        weight, bias = np.array([[1.0, -2, 0.5, 0.1]]), np.array([0.3])
        return dict(
            zip(("weight", "bias"), repair_head(weight, bias, X, y, environments=e), strict=True)
        )

    def scored():
        scores = group_scores(y, np.roll(y, 5), environments=e)
        return {"accuracies": np.nan_to_num(scores.accuracies, nan=-1), "worst": scores.worst}

    yield "select", SOLVED, chosen
    yield "compare", SOLVED, compared
    yield "repair_head", EXACT, repaired
    yield "group_scores", EXACT, scored


def population():
    model = make_linear_gaussian(4, 2, 2, random_state=0)
    X, y, e = model.sample(200, random_state=1)
    yield "gaussian", EXACT, lambda: {"X": X[:3], "weight": model.optimal_invariant_predictor()[0]}
    yield "gaussian ISRMean", EXACT, lambda: of_subspace(ISRMean(2).fit(X, y, environments=e))


def cases():
    """Name, relative tolerance and numbers of each case."""
    for group in (transformers, moments, classifiers, regressors, rivals, decisions, population):
        for name, tolerance, compute in group():
            yield f"{group.__name__}: {name}", tolerance, compute


def numbers_of(compute):
    """The numbers of a case, or the error that it ends with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = compute()
        except ValueError as error:
            return {"error": str(error)[:60]}
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in found.items()}
    return {name: np.vectorize(rounded)(value).tolist() for name, value in arrays.items()}


def rounded(value):
    """A number with the digits that are compared."""
    return float(f"{value:.11g}")


def main():
    every = {name: numbers_of(compute) for name, _, compute in cases()}
    FILE.write_text(json.dumps(every, indent=None, separators=(",", ":")).replace("},", "},\n"))
    errors = {name: found["error"] for name, found in every.items() if "error" in found}
    print(len(every), "cases,", FILE.stat().st_size, "bytes", errors)


if __name__ == "__main__":
    main()
