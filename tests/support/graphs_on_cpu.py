"""CUDA graphs without a GPU: who owns which buffer, and when its content is lost."""

import torch

from train.encoder import graphs


class OnCpu:
    """Stands for train.encoder.graphs.Captured as far as memory goes: one buffer for inputs, activations and output.

    A second forward before the backward of the first spoils the first, as it does on a GPU.
    """

    def __init__(self, run, trained, part, memory):
        torch.rand(7)  # trials draw random numbers
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
    """Let train.encoder.graphs.Graphs work on a CPU in this process; replace: setattr, or pytest's, which undoes it."""
    replace(graphs, "Captured", OnCpu)
    replace(torch.cuda, "graph_pool_handle", object)
    replace(torch.cuda, "get_rng_state", lambda device: None)
    replace(torch.cuda, "set_rng_state", lambda state, device: None)
