// SPDX-License-Identifier: Apache-2.0

// Command mutants measures how much the unit tests of a package notice. It changes one
// operator, condition, constant, or statement of the package, and runs the unit tests
// of this package alone. A mutant that the tests do not notice survives.
//
//	go run ./hack/mutants                                  # all packages of wanted.txt
//	go run ./hack/mutants --count 200 --seed 7 pkg/traffic # one of them, other mutants
//	go run ./hack/mutants --rotation 12                    # a tenth of one of them
//	go run ./hack/mutants --safeguards hack/mutants/safeguards.txt
//
// The mutants are a sample that hangs on the seed. The file wanted.txt holds the score
// that each package must have. The file explained.txt holds the mutants that may
// survive, each with its reason. The command ends before its limit; the next run
// carries on, since verdicts are kept in a journal. It builds with an overlay, so it
// does not touch the work tree.
//
// With --safeguards, the mutants are those of a maintained list: each lacks one condition
// that protects an object, a person, or a record. The simulator tries those that the unit
// tests do not notice. An entry whose text its file does not have exactly once is an error.
//
// It ends with status 1 if a score is too low, or if an explanation is stale, and with
// status 2 if it was stopped before its end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/journal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errStopped):
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	root, wanted, explained string
	journal, unexplained    string
	seed                    uint64
	rotation                int
	count, workers          int
	limit                   time.Duration

	safeguards, match         string
	simulator, simulatorFlags string

	packages []string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	fs := flag.NewFlagSet("mutants", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.root, "root", ".", "directory of the module")
	fs.StringVar(&o.wanted, "wanted", "hack/mutants/wanted.txt", "wanted score of each package")
	fs.StringVar(&o.explained, "explained", "hack/mutants/explained.txt", "mutants that may survive, and why")
	fs.StringVar(&o.journal, "journal", "bin/mutants.ndjson", "file for verdicts, by which the next run carries on")
	fs.StringVar(&o.unexplained, "unexplained", "", "file for survivors as paragraphs of --explained; empty for none")
	fs.Uint64Var(&o.seed, "seed", 1, "chooses the mutants")
	fs.IntVar(&o.rotation, "rotation", -1, "if not negative, chooses one package and a tenth of its mutants")
	fs.IntVar(&o.count, "count", 40, "mutants per package")
	fs.IntVar(&o.workers, "workers", 2, "mutants that are tried at once")
	fs.DurationVar(&o.limit, "limit", 55*time.Minute, "for everything")
	fs.StringVar(&o.safeguards, "safeguards", "", "list of safeguards that are tried instead of random mutants")
	fs.StringVar(&o.match, "match", "", "regular expression: the safeguards with such names alone")
	fs.StringVar(&o.simulator, "simulator", "test/sim", "package that tries the safeguards whose loss unit tests do not notice; empty for none")
	fs.StringVar(&o.simulatorFlags, "simulator-flags", "-test.run=^TestPromisesHoldWhateverHappens$ -sim.seeds=100", "flags of its test binary")
	if err := fs.Parse(args); err != nil {
		return err
	}
	for _, name := range fs.Args() {
		o.packages = append(o.packages, strings.TrimPrefix(filepath.Clean(name), "./"))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, errors.New("the limit is over"))
	defer cancel()
	w, err := o.open(stdout)
	if err != nil {
		return err
	}
	defer w.close()
	if o.safeguards != "" {
		return o.measureSafeguards(ctx, w)
	}
	return o.measure(ctx, w)
}

// workplace is what each run needs.
type workplace struct {
	verdicts *journal.Journal
	scratch  string
	out      io.Writer
}

// open finds the module, opens the journal, and makes a directory for what is built.
func (o *options) open(stdout io.Writer) (*workplace, error) {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return nil, fmt.Errorf("finding the module: %w", err)
	}
	o.root = root
	kept, err := journal.Open(o.journal)
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, fmt.Errorf("making a directory: %w", errors.Join(err, kept.Close()))
	}
	return &workplace{kept, scratch, stdout}, nil
}

func (w *workplace) close() {
	_ = w.verdicts.Close()
	_ = os.RemoveAll(w.scratch)
}

func (w *workplace) say(format string, args ...any) {
	_, _ = fmt.Fprintf(w.out, format, args...)
}
