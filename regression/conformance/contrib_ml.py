# SPDX-License-Identifier: Apache-2.0
"""Random nodes of ai.onnx.ml, and of TfIdfVectorizer. See random_contrib.py."""
from __future__ import annotations

import collections
from dataclasses import dataclass, field

import numpy as np
from contrib_case import ML, Case, Rng, floats, maybe, pick


def ml(op: str) -> Case:
    return Case(op, domain=ML)


def scaler(rng: Rng) -> Case:
    case = ml("Scaler")
    rows, columns = (int(d) for d in rng.integers(1, 6, 2))
    x = floats(rng, rows, columns) if maybe(rng, 0.7) else rng.integers(-9, 9, (rows, columns)).astype(np.int64)
    case.add("x", x)
    width = pick(rng, 1, columns)
    case.attributes |= {
        "offset": [float(v) for v in floats(rng, width)],
        "scale": [float(v) for v in floats(rng, width)],
    }
    return case


def normalizer(rng: Rng) -> Case:
    case = ml("Normalizer")
    x = floats(rng, int(rng.integers(1, 6)), int(rng.integers(1, 6)))
    if maybe(rng, 0.3):
        x[0] = 0
    case.add("x", x)
    case.attributes["norm"] = pick(rng, "MAX", "L1", "L2")
    return case


def binarizer(rng: Rng) -> Case:
    case = ml("Binarizer")
    case.add("x", floats(rng, 3, 4))
    if maybe(rng):
        case.attributes["threshold"] = float(rng.uniform(-1, 1))
    return case


def label_encoder(rng: Rng) -> Case:
    case = ml("LabelEncoder")
    count = int(rng.integers(1, 7))
    ints = rng.integers(-5, 6, count)
    case.attributes |= (
        {"keys_int64s": [int(v) for v in ints]} if maybe(rng) else {"keys_floats": [float(v) for v in ints]}
    )
    case.attributes |= (
        {"values_int64s": [int(v) for v in rng.integers(-9, 9, count)]}
        if maybe(rng)
        else {"values_floats": [float(v) for v in floats(rng, count)]}
    )
    if maybe(rng):
        case.attributes["default_int64" if "values_int64s" in case.attributes else "default_float"] = (
            7 if "values_int64s" in case.attributes else 7.5
        )
    x = rng.integers(-6, 7, (3, 4))
    case.add("x", x if "keys_int64s" in case.attributes else x.astype(np.float32))
    return case


def imputer(rng: Rng) -> Case:
    case = ml("Imputer")
    columns = int(rng.integers(1, 5))
    width = pick(rng, 1, columns)
    if maybe(rng):
        x = floats(rng, 4, columns)
        missing = pick(rng, float("nan"), 2.0)
        x[rng.random(x.shape) < 0.4] = missing
        case.attributes |= {"imputed_value_floats": [float(v) for v in floats(rng, width)]}
        case.attributes["replaced_value_float"] = missing
    else:
        x = rng.integers(-2, 3, (4, columns))
        case.attributes |= {"imputed_value_int64s": [int(v) for v in rng.integers(5, 9, width)]}
        case.attributes["replaced_value_int64"] = 1
    case.add("x", x)
    return case


def array_feature_extractor(rng: Rng) -> Case:
    case = ml("ArrayFeatureExtractor")
    columns = int(rng.integers(1, 6))
    case.add("x", floats(rng, *pick(rng, (columns,), (3, columns), (2, 3, columns))))
    count = int(rng.integers(1, 4))
    case.add("y", rng.integers(0, columns, pick(rng, (count,), (1, count))), constant=maybe(rng))
    return case


def one_hot_encoder(rng: Rng) -> Case:
    case = ml("OneHotEncoder")
    cats = rng.permutation(9)[: int(rng.integers(1, 6))]
    case.attributes |= {"cats_int64s": [int(v) for v in cats], "zeros": 1}
    x = rng.integers(0, 9, pick(rng, (4,), (2, 3)))
    case.add("x", x if maybe(rng) else x.astype(np.float32))
    return case


@dataclass
class Trees:
    """The lists of attributes that describe random trees."""

    lists: dict[str, list] = field(default_factory=lambda: collections.defaultdict(list))
    leaves: list[tuple[int, int]] = field(default_factory=list)

    def grow(self, rng: Rng, tree: int, features: int, modes: list[str], depth: int) -> int:
        number = sum(1 for t in self.lists["nodes_treeids"] if t == tree)
        place = len(self.lists["nodes_treeids"])
        for name, value in (
            ("nodes_treeids", tree),
            ("nodes_nodeids", number),
            ("nodes_featureids", int(rng.integers(features))),
            ("nodes_values", float(np.float32(rng.integers(-4, 5) / 4))),
            ("nodes_modes", "LEAF"),
            ("nodes_truenodeids", 0),
            ("nodes_falsenodeids", 0),
            ("nodes_missing_value_tracks_true", int(rng.integers(2))),
        ):
            self.lists[name].append(value)
        if depth == 0 or (depth < 3 and maybe(rng, 0.3)):
            self.leaves.append((tree, number))
            return number
        self.lists["nodes_modes"][place] = pick(rng, *modes)
        self.lists["nodes_truenodeids"][place] = self.grow(rng, tree, features, modes, depth - 1)
        self.lists["nodes_falsenodeids"][place] = self.grow(rng, tree, features, modes, depth - 1)
        return number


def random_trees(rng: Rng, features: int) -> Trees:
    trees = Trees()
    all_modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    modes = [pick(rng, *all_modes[:4])] if maybe(rng) else all_modes
    for tree in range(int(rng.integers(1, 5))):
        trees.grow(rng, tree, features, modes, int(rng.integers(1, 4)))
    if maybe(rng, 0.6):
        del trees.lists["nodes_missing_value_tracks_true"]
    return trees


def tree_input(rng: Rng, case: Case, features: int) -> None:
    x = (rng.integers(-4, 5, (5, features)) / 4).astype(np.float32)
    if maybe(rng, 0.3):
        x[rng.random(x.shape) < 0.2] = np.nan
    kind = pick(rng, np.float32, np.float32, np.float64)
    case.add("x", x.astype(kind))


def tree_regressor(rng: Rng) -> Case:
    case = ml("TreeEnsembleRegressor")
    features, targets = (int(d) for d in rng.integers(1, 4, 2))
    trees = random_trees(rng, features)
    case.attributes |= dict(trees.lists)
    rows = [(t, n, k) for t, n in trees.leaves for k in range(targets) if targets == 1 or maybe(rng, 0.7)]
    rows = rows or [(*trees.leaves[0], 0)]
    case.attributes |= {
        "n_targets": targets,
        "target_treeids": [r[0] for r in rows],
        "target_nodeids": [r[1] for r in rows],
        "target_ids": [r[2] for r in rows],
        "target_weights": [float(v) for v in floats(rng, len(rows))],
    }
    if maybe(rng):
        case.attributes["aggregate_function"] = pick(rng, "SUM", "AVERAGE", "MIN", "MAX")
    if maybe(rng, 0.4):
        case.attributes["base_values"] = [float(v) for v in floats(rng, targets)]
    if maybe(rng, 0.4):
        case.attributes["post_transform"] = pick(rng, "NONE", "LOGISTIC", "SOFTMAX")
    tree_input(rng, case, features)
    return case


def tree_classifier(rng: Rng) -> Case:
    case = ml("TreeEnsembleClassifier")
    case.outputs = 2
    features, classes = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    trees = random_trees(rng, features)
    case.attributes |= dict(trees.lists)
    if classes == 2 and maybe(rng, 0.7):
        rows = [(t, n, 0) for t, n in trees.leaves]
    else:
        rows = [(t, n, k) for t, n in trees.leaves for k in range(classes) if maybe(rng, 0.7)] or [
            (*trees.leaves[0], 0)
        ]
    weights = floats(rng, len(rows)) if maybe(rng) else rng.random(len(rows)).astype(np.float32) / len(trees.leaves)
    case.attributes |= {
        "classlabels_int64s": [int(v) for v in rng.permutation(20)[:classes]],
        "class_treeids": [r[0] for r in rows],
        "class_nodeids": [r[1] for r in rows],
        "class_ids": [r[2] for r in rows],
        "class_weights": [float(v) for v in weights],
    }
    if maybe(rng, 0.5):
        case.attributes["post_transform"] = pick(rng, "NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
    if maybe(rng, 0.3):
        case.attributes["base_values"] = [float(v) for v in floats(rng, classes)]
    tree_input(rng, case, features)
    return case


def tf_idf(rng: Rng) -> Case:
    case = Case("TfIdfVectorizer", domain="", opset=9)
    lengths = int(rng.integers(1, 4))
    counts, pool, grams = [], [], 0
    for length in range(1, lengths + 1):
        counts.append(len(pool))
        own = {tuple(int(v) for v in rng.integers(0, 4, length)) for _ in range(int(rng.integers(0, 4)))}
        own |= {tuple(int(v) for v in rng.integers(0, 4, length))} if length == lengths else set()
        for gram in sorted(own):
            pool += gram
        grams += len(own)
    most = int(rng.integers(1, lengths + 1))
    case.attributes |= {
        "ngram_counts": counts,
        "ngram_indexes": [int(v) for v in rng.permutation(grams)],
        "pool_int64s": pool,
        "min_gram_length": int(rng.integers(1, most + 1)),
        "max_gram_length": lengths if maybe(rng, 0.7) else most,
        "max_skip_count": int(rng.integers(0, 3)),
        "mode": pick(rng, "TF", "IDF", "TFIDF"),
    }
    if maybe(rng):
        case.attributes["weights"] = [float(v) for v in floats(rng, grams)]
    shape = pick(rng, (int(rng.integers(1, 9)),), (2, int(rng.integers(1, 9))))
    case.add("x", rng.integers(0, 4, shape).astype(pick(rng, np.int32, np.int64)))
    return case
