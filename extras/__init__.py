"""Extras: parts of tidemark that can be deleted, a folder each.

An extra may import any room. No room imports an extra: the registries find it by ``core.plugins``.
A deleted folder is skipped, so ``REGISTERED`` need not be changed. An extra may have:

    sources.py       ``OPEN``, ``ON_DEMAND`` (in no default run), ``GATED``, ``QUESTIONS``: names of
                     modules of crawlers; ``STAND_INS``: closed sources, by the open one
    adapters.py      ``open_adapter``, ``merge_adapter``: functions that open an adapter with its
                     base model, and merge it into the weights
    addresses.py     ``bring``: function that brings the file of an address
    advice.py        ``on_writer``, ``on_snapshot``: functions that say what to do about a
                     database that cannot be read
    alarms.py        ``make_alarms``: function that makes alarms on a Prefect server
    backends.py      ``BACKENDS``: descriptions of kinds of models
    demonstration.py ``CUTOFFS``: the planted cutoffs of the demo's models
    display.py       functions that ``tasks.prefect.telling`` calls with what a run has done
    spans.py         ``export_spans``: function that exports the spans of flow runs
    cleaners.py      ``CLEANERS``: functions that read a text for ``tidemark clean``, by format;
                     ``PACKAGES``: suffixes of the files of a format that has several; ``ENDINGS``:
                     formats by suffix
    clusters.py      ``work_on_cluster``: function that scores on a cluster of machines
    commands.py      ``COMMANDS``: functions of the command line, by panel and name; ``FORMER``,
                     ``FORMER_OPTIONS``: former spellings
    database_advice.py
                     ``on_writer``, ``on_snapshot``: functions that say what to do about a
                     database that cannot be read
    demo.py          ``land_for_demo``: function that lands what an extra adds to the demo
    engines.py       ``start_confined``: function that runs a model with own code
    formats.py       ``config_of``, ``tensor_names_of``: functions that read formats of checkpoints
                     that transformers does not know
    kernels.py       ``quicken``: function that puts fast kernels into a loaded model
    migrations.py    ``migrating``: context manager that keeps the rows of a former database
    parallel.py      ``why_unshared``, ``start_parallel``: functions that let several devices share
                     the layers of a model
    period_deployments.py
                     ``list_deployments``: function that returns the deployments of sources by
                     half-month and week
    publications.py  ``KINDS``: functions that copy the snapshot, by kind of target
    readers.py       ``READERS``: readers of files that are imported, by suffix; ``ARCHIVES``: those
                     suffixes whose texts may not be passed on; ``FORMATS``: readers by format;
                     ``CHOICES``: which files of a folder are of a format
    pages.py         pages of the site, as modules of ``reports/site/pages``, and ``link_of_source``
    scripted.py      ``PREFIX``, ``control_entry``, ``ScriptedGenerator``: models that follow fixed
                     rules
    server_keys.py   ``sign_in``: function that takes credentials of a data root from the Prefect
                     server
    server_sites.py  ``hold_slot``, ``add_block_tokens``: functions that hold a slot of a host
                     and add tokens, from the Prefect server
    sifting.py       ``Paragraphs``, ``judge``: filter of texts of the open web
    site_files.py    ``write_figures``, ``write_small_database``: functions that write files
                     beside the site
    solving.py       ``puzzle_request``, ``list_complexities``: functions that make the request to
                     solve puzzles, and state the puzzles' complexities
    spellings.py     ``respell``: function that replaces former spellings of commands
    stores.py        ``RemoteStore``: class that opens data roots by their addresses, and
                     ``FAILURES``, the classes of its errors
    simulator/       ``SITES`` in its ``__init__``: names of modules of simulated sites
    entries/         entries of the catalogue of models
    views/           views of the warehouse, as those of ``warehouse/views``, and ``old.yml``
    deployments/     ``prefect.yaml``: deployments of ``tidemark deploy``
    land/            statements that land rows, as those of ``warehouse/land``
    queries/         queries of its pages
    takedown.py      ``forget_in_releases``: function that deletes documents from what the extra
                     keeps in the data root, for the extra ``takedown``
    templates/       templates of its pages
    assets/          further files of the site
    tests/           its tests
    README.md        its page
"""

REGISTERED = (
    "adapters",
    "alarms",
    "arxiv",
    "browser_questions",
    "clean",
    "codec",
    "common_crawl",
    "debian_changelogs",
    "examine",
    "exchange",
    "fast_kernels",
    "former_formats",
    "former_spellings",
    "gguf",
    "import_sets",
    "github",
    "imported_results",
    "lake",
    "media",
    "metrics",
    "more_sources",
    "object_store",
    "own_code",
    "papers",
    "period_schedules",
    "permission_sources",
    "prefect_display",
    "question_files",
    "question_sites",
    "ray",
    "real_tasks",
    "recording",
    "reference_models",
    "releases",
    "remote_scoring",
    "repair",
    "report_files",
    "reproduction",
    "retrieval",
    "rwkv",
    "scheduled_questions",
    "scylla",
    "serve_model",
    "serve_site",
    "shared_catalogue",
    "shared_sites",
    "takedown",
    "tensor_parallel",
    "text_comparisons",
    "uncheatable",
    "web_archives",
    "xray",
)
