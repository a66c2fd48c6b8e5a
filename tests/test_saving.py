"""`isrlearn.save` and `isrlearn.load`: what is read does what was written did."""

import importlib.util
import json
import warnings

import numpy as np
import pytest
from conftest import draw_rows
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import isrlearn
from isrlearn import (
    ISR,
    ISRClassifier,
    ISRCov,
    ISRMean,
    ISRRegressor,
    LogisticHead,
    Subspace,
    baselines,
)
from isrlearn.exceptions import ModelFileError
from isrlearn.io import Column, LinearModel, Schema, _skops
from isrlearn.io._model import with_class_sizes

pytest.importorskip("safetensors")
pytest.importorskip("skops", exc_type=ImportError)

STEPS = {"learning_rate": 0.1, "n_steps": 50}
TRANSFORMERS = [ISRMean(1), ISRCov(1, pairs="distinct"), ISR(1), ISR(random_state=0)]
CLASSIFIERS = [
    ISRClassifier(ISRMean(1)),
    ISRClassifier(ISR(random_state=0), RidgeClassifier(), group_weight="balanced"),
    LogisticHead(),
    baselines.ANDMask(0.5, **STEPS),
    baselines.AdamERM(**STEPS),
    baselines.CORAL(),
    baselines.DFR(n_refits=2),
    baselines.ERM("whitened"),
    baselines.GroupDRO(),
    baselines.GroupSubsampling(),
    baselines.IGA(1.0, **STEPS),
    baselines.INLP(n_iterations=2),
    baselines.IRMv1(0.5, **STEPS),
    baselines.LEACE(),
    baselines.LastLayerIRM(),
    baselines.LastLayerVREx(),
    baselines.LinearProbe(weight="group"),
    baselines.Oracle(),
    baselines.VREx(1.0, **STEPS),
]


def seed_of(random):
    return int(random.integers(2**32))


def draw(random, **options):
    """Rows whose classes and environments are told by strings."""
    X, y, e = draw_rows(seed_of(random), **options)
    return X, np.array(["gull", "tern", "auk"])[y], np.array(["lab", "sea", "bay"])[e]


def fit(estimator, X, y, e):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that were stopped early
        if isinstance(estimator, LogisticHead):
            return clone(estimator).fit(X, y)
        return clone(estimator).fit(X, y, environments=e)


def through(fitted, path, **options):
    """Return what a file gives back."""
    isrlearn.save(fitted, path)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    return isrlearn.load(path, **options)


# --- whole estimators


def test_every_public_estimator_is_here():
    public = [getattr(isrlearn, name) for name in isrlearn.__all__ if name != "demo"]
    public += [getattr(baselines, name) for name in baselines.__all__]
    kinds = {k for k in public if isinstance(k, type) and issubclass(k, BaseEstimator)}
    assert kinds <= {type(e) for e in [*TRANSFORMERS, *CLASSIFIERS, ISRRegressor()]}


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda e: type(e).__name__)
def test_classifiers_come_back_to_the_bit(estimator, tmp_path, random):
    X, y, e = draw(random)
    fitted = fit(estimator, X, y, e)
    again = through(fitted, tmp_path / "m.skops")
    assert type(again) is type(fitted) and str(again) == str(fitted)
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.classes_.tolist() == fitted.classes_.tolist()


@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=str)
def test_transformers_come_back_with_their_diagnosis(estimator, tmp_path, random):
    X, y, e = draw(random, n_classes=3)
    fitted = fit(estimator, X, y, e)
    again = through(fitted, tmp_path / "m.skops")
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    assert str(again.diagnose()) == str(fitted.diagnose())
    assert again.environments_.tolist() == fitted.environments_.tolist()
    for name, value in fitted.moments_.to_arrays().items():
        np.testing.assert_array_equal(again.moments_.to_arrays()[name], value)


def test_a_regressor_comes_back(tmp_path, random):
    X, _, e = draw(random)
    y = X @ random.normal(size=5) + random.normal(size=len(X))
    fitted = ISRRegressor(ISR(1)).fit(X, y, environments=e)
    again = through(fitted, tmp_path / "m.skops")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_pipelines_and_what_a_search_found_come_back(tmp_path, random):
    X, y, e = draw(random)
    pipe = make_pipeline(StandardScaler(), PCA(4), ISRMean(1), LogisticRegression())
    pipe.fit(X, y, isrmean__environments=e)
    again = through(pipe, tmp_path / "m.skops")
    np.testing.assert_array_equal(again.predict_proba(X), pipe.predict_proba(X))
    search = GridSearchCV(LogisticHead(), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    again = through(search.best_estimator_, tmp_path / "m.skops")
    np.testing.assert_array_equal(again.coef_, search.best_estimator_.coef_)


def test_saving_leaves_the_estimator_as_it_was(tmp_path, random):
    X, y, e = draw(random)
    fitted = ISRCov(1).fit(X, y, environments=e)
    before = {key: id(value) for key, value in vars(fitted).items()}
    isrlearn.save(fitted, tmp_path / "m.skops")
    assert {key: id(value) for key, value in vars(fitted).items()} == before


# --- in the midst of a stream


@pytest.mark.parametrize("estimator", [ISRMean(1), ISRCov(1), ISR(1)], ids=str)
def test_a_stream_goes_on_after_it_was_saved(estimator, tmp_path, random):
    X, y, e = draw(random)
    order = random.permutation(len(X))
    X, y, e = X[order], y[order], e[order]
    half = len(X) // 2
    straight, saved = clone(estimator), clone(estimator)
    for rows in (slice(0, half), slice(half, None)):
        straight.partial_fit(X[rows], y[rows], environments=e[rows])
        saved.partial_fit(X[rows], y[rows], environments=e[rows])
        saved = through(saved, tmp_path / "m.skops")
    np.testing.assert_array_equal(saved.transform(X), straight.transform(X))


def test_a_stream_that_gives_no_subspace_yet_says_so(tmp_path, random):
    X, y, _ = draw(random)
    isr = ISRMean(1).partial_fit(X, y, environments=["lab"] * len(X))
    with pytest.raises(ValueError, match="rows so far do not give a subspace"):
        isrlearn.save(isr, tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("estimator", [ISRCov(1), ISR(random_state=0)], ids=str)
def test_scatters_above_the_limit_are_left_out(estimator, tmp_path, random, monkeypatch):
    X, y, e = draw(random)
    fitted = clone(estimator).fit(X, y, environments=e)
    isrlearn.save(fitted, tmp_path / "whole.skops")
    monkeypatch.setattr(_skops, "LARGEST_SCATTERS", fitted.moments_.scatters.nbytes - 1)
    isrlearn.save(fitted, tmp_path / "light.skops")
    whole, light = (isrlearn.load(tmp_path / f"{n}.skops") for n in ("whole", "light"))
    assert light.moments_.scatters is None and fitted.moments_.scatters is not None
    np.testing.assert_array_equal(light.transform(X), fitted.transform(X))
    assert light.diagnose().n_spurious == fitted.diagnose().n_spurious
    assert whole.partial_fit(X, y, environments=e).transform(X).shape == X.shape
    with pytest.raises(ValueError, match="leaves out scatters that are large: fit it again"):
        light.partial_fit(X, y, environments=e)
    np.testing.assert_array_equal(light.transform(X), fitted.transform(X))  # as it was


# --- types


class Halved(TransformerMixin, BaseEstimator):
    """A step that no list of trusted types has."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X / 2


def test_an_unknown_type_is_refused_by_name_until_it_is_trusted(tmp_path, random):
    X, y, _ = draw(random)
    pipe = make_pipeline(Halved(), LogisticRegression()).fit(X, y)
    path = tmp_path / "m.skops"
    isrlearn.save(pipe, path)
    name = f"{__name__}.Halved"
    with pytest.raises(ModelFileError, match=rf"not trusted: {name}\. If you know"):
        isrlearn.load(path)
    again = isrlearn.load(path, trusted=[name])
    np.testing.assert_array_equal(again.predict(X), pipe.predict(X))


def test_every_trusted_type_is_there():
    for name in isrlearn.io.TRUSTED:
        module, _, kind = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), kind), type)


# --- weights


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_linear_model_does_what_the_pipeline_did(n_classes, tmp_path, random):
    X, y, e = draw(random, n_classes=n_classes)
    pipe = make_pipeline(StandardScaler(), PCA(4), ISRClassifier(ISRMean(1)))
    pipe.fit(X, y, isrclassifier__environments=e)
    again = through(pipe, tmp_path / "m.safetensors")
    assert isinstance(again, LinearModel)
    np.testing.assert_array_equal(again.predict(X), pipe.predict(X))
    np.testing.assert_allclose(again.decision_function(X), pipe.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(again.predict_proba(X), pipe.predict_proba(X), atol=1e-9)
    of = LinearModel.of(pipe)
    np.testing.assert_array_equal(of.weight, again.weight)
    np.testing.assert_array_equal(of.bias, again.bias)


def test_names_of_features_are_kept(tmp_path, random):
    pandas = pytest.importorskip("pandas")
    X, y, e = draw(random)
    table = pandas.DataFrame(X, columns=list("abcde"))
    fitted = ISRClassifier(ISRMean(1)).fit(table, y, environments=e)
    assert through(fitted, tmp_path / "m.safetensors").schema.feature_names == tuple("abcde")


def with_text():
    """A model of a number, which may be missing, and of a colour."""
    schema = Schema((Column("size"), Column("colour", ("blue", "red"))), "kind", ("site",), "table")
    weight, fill = np.array([[1.0, 10.0, 100.0]]), np.array([40.0, np.nan, np.nan])
    return LinearModel(weight, np.zeros(1), fill, np.array(["gull", "tern"]), schema)


def frames(kind, **columns):
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow").table(columns)
    return pytest.importorskip(kind).DataFrame(columns)


FRAMES = ["pandas", "polars", "pyarrow"]


@pytest.mark.parametrize("kind", FRAMES)
def test_a_model_finds_the_columns_of_a_table_by_their_names(kind, tmp_path, random):
    X, y, e = draw(random)
    columns = dict(zip("abcde", X.T, strict=True))
    fitted = ISRClassifier(ISRMean(1)).fit(frames("pandas", **columns), y, environments=e)
    model = through(fitted, tmp_path / "m.safetensors")
    others = {"site": e, **{name: columns[name] for name in "dbeac"}}
    for ask in ("decision_function", "predict", "predict_proba"):
        expected = getattr(model, ask)(X)
        np.testing.assert_array_equal(getattr(model, ask)(frames(kind, **columns)), expected)
        np.testing.assert_array_equal(getattr(model, ask)(frames(kind, **others)), expected)
    columns["B"] = columns.pop("b")
    with pytest.raises(ValueError, match="lacks 1 of the 5.*add 'b', or rename 'B' to 'b'"):
        model.predict(frames(kind, **columns))


@pytest.mark.parametrize("kind", FRAMES)
def test_text_columns_of_a_table_are_encoded(kind):
    table = frames(kind, colour=["red", None, "green", " blue"], size=[1.0, 2.0, None, 3.5])
    assert with_text().decision_function(table).tolist() == [101, 2, 40, 13.5]
    as_text = frames(kind, size=["1", "", "?", "1e1"], colour=["red", "NA", "green", "blue"])
    assert with_text().decision_function(as_text).tolist() == [101, 40, 40, 20]
    with pytest.raises(ValueError, match="row 2: column 'size' is 'big', but .* numbers there"):
        with_text().predict(frames(kind, colour=["red", "red"], size=["1", "big"]))


def test_columns_of_pandas_mean_what_is_written():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"colour": ["red", None], "size": [1, 0]})
    expected = [101.0, 0.0]
    for other in (
        table.convert_dtypes(),
        table.astype({"colour": "category", "size": bool}),
        table.astype({"size": object}),
        table.rename(columns={"size": " size "}),
        table.assign(**{" size": 7}),
        table.set_index(pandas.Index([5, 3])),
    ):
        assert with_text().decision_function(other).tolist() == expected
    missing = table.astype({"size": "Int64"}).assign(size=pandas.array([1, None], dtype="Int64"))
    assert with_text().decision_function(missing).tolist() == [101, 40]
    with pytest.raises(ValueError, match="'size' is '2020-01-01.*numbers there"):
        with_text().predict(table.assign(size=pandas.Timestamp("2020-01-01")))
    with pytest.raises(ValueError, match="column 'size' more than once"):
        with_text().predict(pandas.concat([table, table[["size"]]], axis=1))


def test_a_model_of_an_array_takes_columns_by_position_unless_they_have_its_names():
    pandas = pytest.importorskip("pandas")
    schema = Schema.of_array(2, "labels", ("environments",))
    model = LinearModel(np.array([[1.0, 10]]), np.zeros(1), np.zeros(2), np.array([0, 1]), schema)
    for names in ([0, 1], ["b", "a"], ["x0", "x1"], ["x1", "x2"]):
        assert model.decision_function(pandas.DataFrame([[1, 2]], columns=names)) == [21]
    assert model.decision_function(pandas.DataFrame([[1, 2]], columns=["x1", "x0"])) == [12]
    with pytest.raises(ValueError, match=r"shape \(1, 3\), but the model has 2 features"):
        model.predict(pandas.DataFrame([[1, 2, 3]]))


# --- the prior of the classes


@pytest.mark.parametrize("k", [2, 3])
def test_the_prior_turns_probabilities_by_the_rule_of_bayes(k, tmp_path, random):
    X, y, e = draw(random, n_classes=k)
    model = LinearModel.of(fit(ISRClassifier(ISRMean(1)), X, y, e))
    shares = random.dirichlet(np.ones(k))
    expected = model.predict_proba(X) * shares
    expected /= expected.sum(axis=1, keepdims=True)
    found = through(model.with_prior(shares), tmp_path / "m.safetensors")
    np.testing.assert_allclose(found.predict_proba(X), expected, atol=1e-12)
    named = dict(zip(model.classes.tolist(), 7 * shares, strict=True))
    np.testing.assert_allclose(model.with_prior(named).bias, found.bias)
    assert found.made["prior"] == "given"
    assert model.made == {"prior": "balanced"}
    alike = model.with_prior(np.ones(k)).predict_proba(X)
    np.testing.assert_allclose(alike, model.predict_proba(X), atol=1e-12)


def test_a_model_saved_from_python_counts_its_prior_once(random):
    X, y, e = draw(random)
    model = LinearModel.of(fit(ISRClassifier(ISRMean(1), group_weight=None), X, y, e))
    assert model.made == {"prior": "training"}
    with pytest.raises(ValueError, match="a second one would count twice"):
        model.with_prior([0.1, 0.9])
    assert LinearModel.of(fit(ISRClassifier(ISRMean(1), baselines.GroupDRO()), X, y, e)).made == {}


def test_the_prior_of_the_training_rows_is_that_of_a_head_that_counts_rows_alike(random):
    """With classes of one variance the intercepts differ by the logs of the shares."""
    n = 200_000
    y = (random.random(n) < 0.1).astype(int)
    X = 2.0 * y[:, None] + random.normal(size=(n, 1))
    alike, rows = (
        LinearModel.of(LogisticRegression(class_weight=w, C=1e6).fit(X, y))
        for w in ("balanced", None)
    )
    found = with_class_sizes(alike, np.bincount(y), prior="train")
    np.testing.assert_allclose(found.bias, rows.bias, atol=0.1)
    assert abs(alike.bias - rows.bias)[0] > 2
    assert found.made == {"prior": "training", "class_shares": [np.mean(y == 0), np.mean(y == 1)]}


def test_what_the_model_knows_of_its_prior_is_kept(tmp_path, random):
    kept = with_class_sizes(with_text(), [30, 10])
    assert kept.made == {"prior": "balanced", "class_shares": [0.75, 0.25]}
    np.testing.assert_array_equal(kept.bias, with_text().bias)
    again = through(kept, tmp_path / "m.safetensors").with_prior("training")
    np.testing.assert_allclose(again.bias, with_text().bias + np.log(1 / 3))
    assert again.made["prior"] == "training"
    with pytest.raises(ValueError, match="knows a prior already .'training'.* count twice"):
        again.with_prior("training")
    plain = with_class_sizes(with_text(), [30, 10], prior="train", alike=False)
    assert plain.made["prior"] == "training"
    np.testing.assert_array_equal(plain.bias, with_text().bias)


@pytest.mark.parametrize(
    ("prior", "says"),
    [
        ("training", "prior='training' is not known to this model: give the share of each"),
        ("uniform", "prior='uniform' is not known"),
        ({"gull": 1}, "has the labels .'gull'., but the model has the classes .'gull', 'tern'."),
        ([1, 0], r"prior=\[1, 0\] must be 2 positive shares"),
        ([1, 1, 1], "must be 2 positive shares, one for each of the classes"),
        ([1, np.inf], "must be 2 positive shares"),
        (None, "prior=None must be 2 positive shares"),
    ],
)
def test_a_prior_that_is_none_is_refused(prior, says):
    with pytest.raises(ValueError, match=says):
        with_text().with_prior(prior)


# --- subspaces


def test_a_subspace_comes_back(tmp_path, random):
    X, y, e = draw(random)
    subspace = ISRMean(1, scale=0.5).fit(X, y, environments=e).subspace_
    again = through(subspace, tmp_path / "m.safetensors")
    assert isinstance(again, Subspace) and again.scale == 0.5
    np.testing.assert_array_equal(again.project(X), subspace.project(X))


def test_the_same_content_gives_the_same_bytes(tmp_path, random):
    X, y, e = draw(random)
    fitted = ISRClassifier(ISRMean(1)).fit(X, y, environments=e)
    for ending in ("safetensors", "onnx"):
        if ending == "onnx" and importlib.util.find_spec("onnx") is None:
            continue
        contents = set()
        for _ in range(8):
            isrlearn.save(fitted, tmp_path / f"m.{ending}")
            contents.add((tmp_path / f"m.{ending}").read_bytes())
        assert len(contents) == 1


# --- onnx


@pytest.fixture
def onnx():
    pytest.importorskip("onnx", exc_type=ImportError)
    return pytest.importorskip("onnxruntime")


def run_graph(onnx, path, X):
    session = onnx.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"features": X}), strict=True))


@pytest.mark.parametrize("labels", ["strings", "integers"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_graph_gives_what_the_classifier_gives(onnx, labels, n_classes, tmp_path, random):
    X, y, e = draw(random, n_classes=n_classes)
    if labels == "integers":
        y = np.unique(y, return_inverse=True)[1] * 7 - 3
    pipe = make_pipeline(StandardScaler(), PCA(4), ISRClassifier(ISRMean(1)))
    pipe.fit(X, y, isrclassifier__environments=e)
    for model in (pipe, LinearModel.of(pipe)):
        isrlearn.save(model, tmp_path / "m.onnx")
        found = run_graph(onnx, tmp_path / "m.onnx", X)
        assert found.keys() == {"label", "scores", "probabilities"}
        np.testing.assert_array_equal(found["label"], pipe.predict(X))
        scores = pipe.decision_function(X).reshape(len(X), -1)
        np.testing.assert_allclose(found["scores"], scores, atol=1e-9)
        np.testing.assert_allclose(found["probabilities"], pipe.predict_proba(X), atol=1e-9)


def test_a_graph_has_no_probabilities_that_the_classifier_has_not(onnx, tmp_path, random):
    X, y, e = draw(random)
    ridge = ISRClassifier(ISRMean(1), RidgeClassifier()).fit(X, y, environments=e)
    isrlearn.save(ridge, tmp_path / "m.onnx")
    found = run_graph(onnx, tmp_path / "m.onnx", X)
    assert found.keys() == {"label", "scores"}
    np.testing.assert_array_equal(found["label"], ridge.predict(X))


@pytest.mark.parametrize("n_targets", [1, 3])
def test_a_graph_gives_what_the_regressor_gives(onnx, n_targets, tmp_path, random):
    X, _, e = draw(random)
    y = X @ random.normal(size=(5, n_targets)) + random.normal(size=(len(X), n_targets))
    models = [make_pipeline(StandardScaler(), LinearRegression()).fit(X, y)]
    if n_targets == 1:
        y = y[:, 0]
        models = [models[0].fit(X, y), ISRRegressor(ISR(1)).fit(X, y, environments=e)]
    for model in models:
        isrlearn.save(model, tmp_path / "m.onnx")
        (found,) = run_graph(onnx, tmp_path / "m.onnx", X).values()
        np.testing.assert_allclose(found, model.predict(X), atol=1e-9)


def test_missing_values_are_filled_in_a_graph(onnx, tmp_path, random):
    X = random.normal(size=(50, 3))
    schema = Schema((Column("a"), Column("b"), Column("c")), "y", ("e",), "table")
    arrays = random.normal(size=(3, 3)), random.normal(size=3), random.normal(size=3)
    model = LinearModel(*arrays, np.array(["x", "y", "z"]), schema)
    isrlearn.save(model, tmp_path / "m.onnx")
    X[random.uniform(size=X.shape) < 0.3] = np.nan
    found = run_graph(onnx, tmp_path / "m.onnx", X)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(found["label"], model.predict(X))


def test_a_graph_says_what_its_features_are(onnx, tmp_path, random):
    pandas = pytest.importorskip("pandas")
    X, y, e = draw(random)
    table = pandas.DataFrame(X, columns=list("abcde"))
    fitted = ISRClassifier(ISRMean(1)).fit(table, y, environments=e)
    isrlearn.save(fitted, tmp_path / "m.onnx")
    session = onnx.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    card = json.loads(session.get_modelmeta().custom_metadata_map["isrlearn"])
    assert card == {"feature_names": list("abcde"), "classes": ["gull", "tern"]}


# --- mistakes


@pytest.fixture
def fitted(random):
    X, y, e = draw(random)
    return ISRClassifier(ISRMean(1)).fit(X, y, environments=e)


@pytest.mark.parametrize("name", ["m.pkl", "m", "m.joblib", "m.SKOPS"])
def test_another_ending_is_refused(name, fitted, tmp_path):
    path = tmp_path / name
    with pytest.raises(ValueError, match=r"saved as \.skops, \.safetensors or \.onnx"):
        isrlearn.save(fitted, path)
    with pytest.raises(ValueError, match=r"is saved as \.safetensors\."):
        isrlearn.save(fitted.subspace_, path)
    with pytest.raises(ValueError, match=r"saved as \.safetensors or \.onnx"):
        isrlearn.save(LinearModel.of(fitted), path)
    path.write_bytes(b"something")
    with pytest.raises(ModelFileError, match=r"read from \.safetensors and \.skops"):
        isrlearn.load(path)


def test_what_cannot_be_saved_is_named(fitted, tmp_path, random):
    for value in ({"a": 1}, None, np.eye(3), ISRClassifier):
        with pytest.raises(TypeError, match="cannot be saved: give a fitted estimator"):
            isrlearn.save(value, tmp_path / "m.skops")
    with pytest.raises(ValueError, match="not fitted"):
        isrlearn.save(ISRClassifier(), tmp_path / "m.safetensors")
    with pytest.raises(TypeError, match="no classifier"):
        model = LinearRegression().fit(random.normal(size=(9, 2)), np.arange(9))
        isrlearn.save(model, tmp_path / "m.safetensors")
    with pytest.raises((TypeError, ValueError), match="SimpleImputer"):
        X = random.normal(size=(40, 2))
        model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(X, X[:, 0] > 0)
        isrlearn.save(model, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["safetensors", "skops"])
def test_what_is_no_model_is_named(ending, tmp_path, random):
    path = tmp_path / f"m.{ending}"
    with pytest.raises(ModelFileError, match="is not there"):
        isrlearn.load(path)
    for content in (b"", b"x", b"PK\x03\x04", random.bytes(500)):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=f"m.{ending}"):
            isrlearn.load(path)


def test_a_file_that_skops_wrote_alone_is_refused(fitted, tmp_path):
    from skops.io import dump

    dump(fitted, tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="Only files that isrlearn.save wrote"):
        isrlearn.load(tmp_path / "m.skops")


@pytest.mark.parametrize("ending", ["safetensors", "skops", "onnx"])
def test_a_missing_library_is_named(ending, fitted, tmp_path, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == ending else real(name, *a)
    )
    path = tmp_path / f"m.{ending}"
    with pytest.raises(ModelFileError, match=rf"{ending} needs the extra 'io': pip install"):
        isrlearn.save(fitted, path)
    if ending != "onnx":
        with pytest.raises(ModelFileError, match="pip install"):
            isrlearn.load(path)
