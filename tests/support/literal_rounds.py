"""Federated learning written down literally: a server and its clients by loops over batches, in float64."""

import copy
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from fedsim.streams import Streams

LAWS = {
    **dict.fromkeys(("classification", "next-token"), functional.cross_entropy),
    **dict.fromkeys(("regression", "squared"), functional.mse_loss),
    "absolute": functional.l1_loss,
    "huber": functional.huber_loss,
    "multi-label": functional.binary_cross_entropy_with_logits,
}
"""Of each task, or of its losses, as torch has them."""


def losses_of(task, scores, targets):
    """Return the loss of each sample, from what counts of it alone."""
    law, found = LAWS[task.get("loss", task["kind"])], []
    for said, true in zip(scores, targets, strict=True):
        counts = torch.isin(true, torch.tensor(task.get("ignore", [-999])), invert=True)
        kind = torch.int64 if law is functional.cross_entropy else torch.float64
        found.append(law(said[counts], true[counts].to(kind)) if counts.any() else 0 * said.sum())
    return torch.stack(found)


class Literal:
    """One server and its clients, whose settings are those of a learning table; samples are those of its data."""

    def __init__(self, table, module, samples, targets, rows, seed):
        self.table, self.local, self.algorithm = table, table["local"], table["algorithm"]
        self.kind, self.x, self.y, self.rows, self.seed = table["algorithm"]["kind"], samples, targets, rows, seed
        self.net = copy.deepcopy(module).double()
        for layer in self.net.modules():
            if isinstance(layer, nn.BatchNorm1d):  # whose mean over clients need not be whole
                layer.num_batches_tracked = layer.num_batches_tracked.double()
        self.parameters = list(self.net.parameters())
        self.trained = sum(one.numel() for one in self.parameters)
        self.model = self.numbers()
        self.own = self.personal()
        self.kept, self.moments, self.layers, self.left, self.server = {}, {}, {}, {}, {"steps": 0}
        self.common = np.zeros(self.trained)

    def numbers(self):
        state = (*self.parameters, *self.net.buffers())
        return np.concatenate([one.detach().numpy().reshape(-1).astype(float) for one in state])

    def load(self, vector):
        state = (*self.parameters, *self.net.buffers())
        ends = np.cumsum([one.numel() for one in state])[:-1]
        with torch.no_grad():
            for one, piece in zip(state, np.split(vector, ends), strict=True):
                one.copy_(torch.from_numpy(piece).view(one.shape))

    def personal(self):
        """Return which numbers stay with each client."""
        layers = [one for one in self.net.modules() if isinstance(one, nn.Linear | nn.BatchNorm1d)]
        mine = {"fedper": [layers[-1]], "fedbn": [one for one in layers if isinstance(one, nn.BatchNorm1d)]}
        kept = {id(one) for layer in mine.get(self.kind, ()) for one in layer.parameters()}
        whole = [np.full(one.numel(), id(one) in kept) for one in self.parameters]
        statistics = np.full(self.model.size - self.trained, self.kind == "fedbn")
        return np.concatenate([*whole, statistics])

    def held(self, level, version):
        """Return which numbers of a net of one hidden layer a client of a width has."""
        if not level:
            return np.ones(self.model.size, bool)
        first, _, last, classes = (one.detach() for one in self.parameters)
        hidden, shift = len(first), version if self.kind == "fedrolex" else 0
        units = np.zeros(hidden, bool)
        units[(shift + np.arange(math.ceil(self.algorithm["widths"][level] * hidden))) % hidden] = True
        inside = np.repeat(units, first.shape[1]), units, np.tile(units, len(last)), np.ones(len(classes), bool)
        return np.concatenate(inside)

    def batches(self, client, version, work):
        """Yield the rows of each step, and whether it is one of the first pass."""
        size, least = self.local["batch_size"], 2 if self.model.size > self.trained else 1
        count = len(self.rows[client])
        parts = [(begin, begin + size) for begin in range(0, count, size) if min(count - begin, size) >= least]
        if self.local["short_batch"] == "skip" and count >= size:
            parts = [part for part in parts if part[1] <= count]
        planned = min(self.local.get("steps", self.local["epochs"] * len(parts)), self.local.get("max_batches", 99))
        wanted = max(1, math.ceil(work * planned - 1e-9))
        draws = Streams(self.seed).generator("training", client, version)
        draws.integers(2**63)  # of what a module draws
        for step in range(wanted):
            if step % len(parts) == 0:
                order = draws.permutation(count)
            yield self.rows[client][order[slice(*parts[step % len(parts)])]], step < len(parts)

    def rate(self, version, step):
        schedule = self.local.get("schedule", {"kind": "decay", "factor": 1.0, "every": 1, "by": "step"})
        passed = version if schedule["by"] == "round" else step
        if schedule["kind"] == "decay":
            return self.local["learning_rate"] * schedule["factor"] ** (passed // schedule["every"])
        fallen = math.cos(math.pi * min(passed / schedule["over"], 1.0))
        return self.local["learning_rate"] * (schedule["least"] + (1 - schedule["least"]) * (1 + fallen) / 2)

    def loss(self, client, rows):
        """Return the losses of the samples of a batch, and the loss that a client lowers."""
        body, last = self.net[:-1], self.net[-1]
        inside = body(self.x[rows])
        each = losses_of(self.table["task"], last(inside), self.y[rows])
        if self.kind != "moon" or client not in self.kept:
            return each, each.mean()
        near, far = (
            functional.cosine_similarity(inside.flatten(1), self.inside(one, rows)) / self.algorithm["temperature"]
            for one in (self.model, self.kept[client])
        )
        return each, each.mean() - self.algorithm["mu"] * (near.exp() / (near.exp() + far.exp())).log().mean()

    def inside(self, vector, rows):
        other = copy.deepcopy(self)
        other.load(vector)
        return other.net.eval()[:-1](self.x[rows]).flatten(1).detach()

    def train(self, client, version, work, start):
        """Return a client's model, the losses of its samples, those of the first pass, and the rates of its steps."""
        adam, zero, first = self.local["optimizer"] == "adam", torch.zeros(self.trained), torch.from_numpy(start)
        mean, squares, count = self.moments.get(client, (zero.double(), zero.double(), 0))
        offset, pull = np.zeros(self.trained), self.local.get("proximal", 0.0) + self.algorithm.get("alpha", 0.0)
        pull += self.algorithm["mu"] if self.kind in ("fedprox", "fednova") else 0.0
        if self.kind == "scaffold":
            offset = self.common - self.kept.get(client, 0.0)
        if self.kind == "feddyn":
            offset = offset - self.kept.get(client, 0.0)
        seen, passed, rates = [], [], []
        self.load(start)
        self.net.train()
        for rows, once in self.batches(client, version, work):
            each, whole = self.loss(client, rows)
            seen += each.tolist()
            passed += each.tolist() if once else []
            weights = nn.utils.parameters_to_vector(self.parameters).detach()
            slope = nn.utils.parameters_to_vector(torch.autograd.grad(whole, self.parameters))
            slope = slope + pull * (weights - first[: self.trained]) + torch.from_numpy(offset)
            slope = slope * min(1.0, self.local.get("clip_norm", math.inf) / max(float(slope.norm()), 1e-30))
            slope, rate = slope + self.local.get("weight_decay", 0.0) * weights, self.rate(version, len(rates))
            rates.append(rate)
            if adam:
                count, mean, squares = count + 1, 0.9 * mean + 0.1 * slope, 0.999 * squares + 0.001 * slope**2
                step = mean / (1 - 0.9**count) / ((squares / (1 - 0.999**count)).sqrt() + 1e-8)
            else:
                mean = step = self.local.get("momentum", 0.0) * mean + slope
            nn.utils.vector_to_parameters(weights - rate * step, self.parameters)
        if self.local.get("keep_optimizer_state"):
            self.moments[client] = mean, squares, count
        return self.numbers(), np.array(seen), np.array(passed), np.array(rates)

    def round(self, version, clients, work, weights, levels):
        """Go on to the next model; return what each client sends, and its losses and its gain of accuracy."""
        sent, told, steps, rates = [], [], [], []
        kept = dict(self.kept)
        for client, share, level in zip(clients, work, levels, strict=True):
            part = self.held(level, version)
            start = np.where(part, self.model, 0.0)
            start[self.own] = self.layers.get(client, start[self.own])
            trained, losses, first, used = self.train(client, version, share, start)
            moved = np.where(part, trained - start, 0.0)
            self.keep(client, moved, used)
            moved = np.where(self.own, 0.0, moved)
            sent.append(self.compressed(client, moved))
            mine = self.x[self.rows[client]], self.y[self.rows[client]]
            before, after = (self.judged(one, *mine)[1] for one in (self.model, self.model + moved))
            told.append((losses.mean(), math.sqrt(np.square(first).mean()), after - before))
            steps.append(used.size)
            rates.append(used.mean())
        updates, parts = np.array(sent), np.array([self.held(level, version) for level in levels])
        update = self.combined(updates, np.array(weights), parts)
        if self.kind == "fednova":
            update[: self.trained] = self.normalised(updates, np.array(weights), steps, rates)
        if self.kind == "scaffold":
            changes = [self.kept[client] - kept.get(client, 0.0) for client in clients]
            self.common = self.common + np.sum(changes, axis=0) / len(self.rows)
        if self.kind == "feddyn":
            self.common = self.common - self.algorithm["alpha"] / len(self.rows) * updates[:, : self.trained].sum(0)
            update[: self.trained] -= self.common / self.algorithm["alpha"]
        self.step(update)
        return updates[:, : self.trained], np.array(told)

    def keep(self, client, moved, rates):
        trained, before = moved[: self.trained], self.kept.get(client, 0.0)
        if self.kind == "scaffold":
            self.kept[client] = before - self.common - (trained / rates.sum() if rates.sum() else 0.0)
        elif self.kind == "feddyn":
            self.kept[client] = before - self.algorithm["alpha"] * trained
        elif self.kind == "moon":
            self.kept[client] = self.model + moved
        elif self.own.any():
            self.layers[client] = self.layers.get(client, self.model[self.own]) + moved[self.own]

    def compressed(self, client, moved):
        """Return the largest numbers of a client's update, which keeps the others for its next one if it is told so."""
        if "compression" not in self.table:
            return moved
        options, owed = self.table["compression"], moved[: self.trained] + self.left.get(client, 0.0)
        order = sorted(range(owed.size), key=lambda place: -abs(owed[place]))
        sent = np.zeros(owed.size)
        sent[order[: round(options["share"] * owed.size)]] = owed[order[: round(options["share"] * owed.size)]]
        self.left[client] = (owed - sent) * options["error_feedback"]
        return np.concatenate([sent, moved[self.trained :]])

    def combined(self, updates, weights, parts):
        """Return the mean of updates, of each number over those that hold it, or what a robust rule makes of them."""
        rule, ordered = self.table.get("aggregation", {"kind": "mean"}), np.sort(updates, axis=0)
        if rule["kind"] == "median":
            return np.median(updates, axis=0) * weights.sum()
        if rule["kind"] == "trimmed-mean":
            cut = math.floor(rule["share"] * len(updates))
            return ordered[cut : len(updates) - cut].mean(0) * weights.sum()
        if rule["kind"] == "multi-krum":
            apart = ((updates[:, None, : self.trained] - updates[None, :, : self.trained]) ** 2).sum(2)
            scores = np.sort(apart, axis=1)[:, 1 : len(updates) - rule["byzantine"] - 1].sum(1)
            return updates[np.argsort(scores)[: rule["averaged"]]].mean(0) * weights.sum()
        shares = parts * weights[:, None]
        return (shares * updates).sum(0) * weights.sum() / np.where(shares.any(0), shares.sum(0), 1.0)

    def normalised(self, updates, weights, steps, rates):
        """Return FedNova's update of trained numbers: each over how far steps of gradient 1 go."""
        pull, norms = self.local.get("proximal", 0.0) + self.algorithm["mu"], []
        for count, rate in zip(steps, rates, strict=True):
            speed = norm = 0.0
            for _ in range(count):
                speed = self.local.get("momentum", 0.0) * speed + 1 - rate * pull * norm
                norm += speed
            norms.append(norm)
        effective = weights @ (steps if pull else norms) / weights.sum()
        return effective * (weights / norms) @ updates[:, : self.trained]

    def step(self, update):
        """Let the server's optimiser step; statistics are averaged."""
        options, state = self.table["server"], self.server
        change, self.model = update[: self.trained], self.model.copy()
        self.model[self.trained :] += update[self.trained :]
        if options["kind"] == "fedavg":
            self.model[: self.trained] += change
            return
        beta, rate = options.get("beta_1", 0.0), options["learning_rate"]
        if options["kind"] == "fedavgm":
            state["mean"] = options["momentum"] * state.get("mean", 0.0) + change
            self.model[: self.trained] += rate * state["mean"]
            return
        state["steps"] += 1
        state["mean"] = beta * state.get("mean", 0.0) + (1 - beta) * change
        old, new, forget = state.get("squares", options["initial"]), change**2, 1 - options.get("beta_2", 0.0)
        state["squares"] = {
            "fedadagrad": old + new,
            "fedadam": old - forget * (old - new),
            "fedyogi": old - forget * new * np.sign(old - new),
        }[options["kind"]]
        mean, squares = state["mean"], state["squares"]
        if options["bias_correction"]:
            mean = mean / (1 - beta ** state["steps"])
            squares = squares / (1 - options.get("beta_2", 0.0) ** state["steps"])
        self.model[: self.trained] += rate * mean / (np.sqrt(squares) + options["tau"])

    def judged(self, vector, samples, targets):
        """Return the mean loss of a model, and its accuracy where samples have labels."""
        self.load(vector)
        self.net.eval()
        with torch.no_grad():
            scores = self.net(samples)
        right = (scores.argmax(1) == targets).double().mean() if self.table["task"]["kind"] == "classification" else 0
        return float(losses_of(self.table["task"], scores, targets).mean()), float(right)

    def of_client(self, client):
        """Return the model that a client uses."""
        found = self.model.copy()
        found[self.own] = self.layers.get(client, found[self.own])
        return found
