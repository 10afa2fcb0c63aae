// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

var errFailed = errors.New("not everything passed")

type options struct {
	stage, waits, times, failures, again string
	verbose, rewrite                     bool
}

func main() {
	var o options
	flag.StringVar(&o.stage, "stage", "", "what is tested: unit, integration, floods or e2e")
	flag.StringVar(&o.waits, "waits", "", "the folder of the records of waits ("+waits.Variable+")")
	flag.StringVar(&o.times, "times", "test/times.tsv", "the table of the times that packages took before")
	flag.StringVar(&o.failures, "failures", "", "a file to which the reasons of failures are added, too")
	flag.StringVar(&o.again, "again", "", "a folder for the tests that may run again, see hack/again.sh; their failures are not added to -failures")
	flag.BoolVar(&o.verbose, "verbose", false, "print all that tests say")
	flag.BoolVar(&o.rewrite, "rewrite", false, "write the times of this stage into the table")
	flag.Parse()
	if err := run(o, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
}

func run(o options, in io.Reader, out io.Writer) error {
	if _, known := newBudget[o.stage]; !known {
		return fmt.Errorf("reading -stage: %q is none of unit, integration, floods, e2e", o.stage)
	}
	r, err := follow(in, out, o.verbose)
	if err != nil {
		return err
	}
	var waited []waits.Wait
	if o.waits != "" {
		if waited, err = waits.Read(o.waits); err != nil {
			return err
		}
	}
	before, err := readTimes(o.times)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, render(r, o.stage, waited, before)); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	if err := tellFailures(o, r); err != nil {
		return err
	}
	if r.failed {
		return errFailed // times of a run that failed are no measure
	}
	if o.rewrite {
		return writeTimes(o.times, rewritten(before, o.stage, r.packages, measureHotPaths(waited)))
	}
	return nil
}

// tellFailures leaves the reasons of failures to the run of the tests that may run again,
// or adds them to the list of the run.
func tellFailures(o options, r *result) error {
	reasons := renderFailures(o.stage, r.failures)
	if o.again != "" {
		tests := r.testsToRunAgain()
		if err := writeAgain(o.again, o.stage, tests, reasons); err != nil || len(tests) > 0 {
			return err
		}
	}
	if o.failures == "" || reasons == "" {
		return nil
	}
	return appendTo(o.failures, reasons)
}

// follow prints what is to be seen of the events as they come, and sums them up.
func follow(in io.Reader, out io.Writer, verbose bool) (*result, error) {
	c := newCollector(verbose)
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			if _, err := io.WriteString(out, c.take(parse(line))); err != nil {
				return nil, fmt.Errorf("printing: %w", err)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the events: %w", err)
		}
	}
	r, text := c.end()
	if _, err := io.WriteString(out, text); err != nil {
		return nil, fmt.Errorf("printing: %w", err)
	}
	return r, nil
}

// parse reads an event. A line that is none, e.g. a message of the go command, becomes
// an event that prints the line.
func parse(line string) event {
	var e event
	if err := json.Unmarshal([]byte(line), &e); err != nil || e.Action == "" {
		return event{Action: actionPrint, Output: line}
	}
	return e
}
