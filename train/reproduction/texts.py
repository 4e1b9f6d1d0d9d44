"""Paraphrases and back-translations of the corpus, which `train.generate` writes once for all tables of a folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from train.config.options import options_of
from train.generation import back_translation, paraphrase
from train.generation.launch import launch
from train.generation.options import Job, Running, Search, Text, resolve_job
from train.generation.parts import MANIFEST, folder_of
from train.record.folder import read_object
from train.reproduction.setting import OWN, Setting
from train.tables.kind import PARAPHRASE
from una_fast.errors import InputError


@dataclass(frozen=True)
class Texts:
    """The texts of one kind, paraphrases or back-translations."""

    setting: Setting
    kind: str

    @cached_property
    def job(self) -> Job:
        """The job of train.generate that writes them."""
        paper, given = self.setting.request.paper, self.setting.request.given
        module: Any = paraphrase if self.kind == PARAPHRASE else back_translation
        values = {
            name: one.default
            for group in (Text, module.Models, Search, Running)
            for name, one in options_of(group).items()
        }
        names = (paper.paraphraser,) if self.kind == PARAPHRASE else paper.translator
        values |= dict(zip(("forward", "backward"), names, strict=False)) if len(names) > 1 else {"model": names[0]}
        values |= {name: given[name] for name in ("column", "nproc", "device") if name in given}
        values |= {"corpus": self.setting.corpus, "output": str(self.setting.texts_file(self.kind))}
        values["precision"] = "fp32" if given.get("precision", "fp32") == "fp32" else "bf16"
        return resolve_job(self.kind, module.choose(values), values)

    @property
    def models(self) -> list[str]:
        """The seq2seq models, which must be on this machine."""
        return list(self.job.models)

    @property
    def name(self) -> str:
        """The file, as it is called in messages."""
        return str(self.setting.texts_file(self.kind))

    @property
    def _begun(self) -> bool:
        return (folder_of(self.setting.texts_file(self.kind)) / MANIFEST).exists()

    def done(self) -> bool:
        """True if the file is complete.

        Raises:
            InputError: the user's own file does not exist, or other models wrote the file.
        """
        path = self.setting.texts_file(self.kind)
        if self.setting.is_own(self.kind):
            if not path.exists():
                raise InputError(f"--{OWN[self.kind].replace('_', '-')} {path}: there is no such file")
            return True
        if not path.exists() or self._begun:
            return False
        by = read_object(path.with_name(f"{path.name}.manifest")).get("names", list(self.job.models))
        if by != list(self.job.models):
            raise InputError(
                f"{path}: was written by {', '.join(by)}: choose another --output, or name the same models"
            )
        return True

    def do(self) -> int:
        """Write the texts that are left and return the exit code."""
        from dataclasses import replace

        self.setting.texts_file(self.kind).parent.mkdir(parents=True, exist_ok=True)
        return launch(replace(self.job, resume=self._begun))

    def describe(self) -> str:
        """The command that writes the file."""
        job = self.job
        flags = (
            ["--model", *job.models]
            if len(job.models) == 1
            else ["--forward", job.models[0], "--backward", job.models[1]]
        )
        files = ["--corpus", *job.corpus, "--output", job.output]
        return " ".join(["python -m train.generate", self.kind, *flags, *files])
