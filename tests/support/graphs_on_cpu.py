"""A stand-in for CUDA graphs on a CPU: which object owns a buffer, and when its content is overwritten."""

import torch

from train.encoder import graphs


class OnCpu:
    """Uses memory like train.encoder.graphs.Captured: one buffer for inputs, activations and output.

    As on a GPU, a second forward before the backward of the first overwrites the first one's activations.
    """

    def __init__(self, run, trained, part, memory):
        torch.rand(7)  # the trials before a capture draw random numbers
        self.run, self.trained = run, trained
        self.inputs = {name: tensor.clone() for name, tensor in part.items()}
        self.output = run(self.inputs).detach()

    def forward(self, part):
        for name, tensor in part.items():
            self.inputs[name].copy_(tensor)
        with torch.enable_grad():
            self.activations = self.run(self.inputs)
        return self.output.copy_(self.activations.detach())

    def backward(self, gradient):
        return torch.autograd.grad(self.activations, self.trained, gradient)


def stand_in(replace=setattr):
    """Let train.encoder.graphs.Graphs work on a CPU here. replace: setattr, or monkeypatch.setattr to undo it."""
    replace(graphs, "Captured", OnCpu)
    replace(torch.cuda, "graph_pool_handle", object)
    replace(torch.cuda, "get_rng_state", lambda device: None)
    replace(torch.cuda, "set_rng_state", lambda state, device: None)
