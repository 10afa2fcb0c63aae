// SPDX-License-Identifier: Apache-2.0

// Command xdsload loads a discovery server on this machine with many proxies that
// behave like Envoys, and prints what that cost.
//
//	xdsload --proxies 1000 --services 5000 --dependencies 50 --servers plumbline,snapshot,linear
//
// It starts itself once more as the server, in a process with two processors, so that
// the cost of the two can be told apart; both go over loopback, with TLS and tokens.
// Each server is given the same resources and the same work, one after the other: a
// start of all proxies, steps of weights and endpoints, reconnects, and proxies that
// misbehave. Each phase has a time limit, and so has the whole.
//
//	xdsload path --proxies 1000 --services 5000 --scopes 1000
//
// loads the discovery server as it is installed, with a real API server before it.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/world"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "xdsload: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	shape                  world.Shape
	servers, phases, json  string
	rounds, part, churn    int
	limit, total           time.Duration
	counting               bool
	cpuprofile, memprofile string
}

func run(ctx context.Context, args []string, in io.Reader, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "serve" {
		return serveMain(ctx, args[1:], in, stdout)
	}
	if len(args) > 0 && args[0] == "path" {
		return pathMain(ctx, args[1:], stdout, stderr)
	}
	var o options
	fs := flag.NewFlagSet("xdsload", flag.ContinueOnError)
	fs.SetOutput(stderr)
	shapeFlags(fs, &o.shape)
	fs.StringVar(&o.servers, "servers", "plumbline", "which are loaded, one after the other: plumbline, snapshot, linear")
	fs.StringVar(&o.phases, "phases", "", "phases after the start, by their beginning; empty for all")
	fs.StringVar(&o.json, "json", "", "file for the results as JSON")
	fs.IntVar(&o.rounds, "rounds", 20, "steps of each kind")
	fs.IntVar(&o.part, "part", 10, "of so many proxies one misbehaves")
	fs.IntVar(&o.churn, "churn", 40, "proxies that are replaced per second")
	fs.BoolVar(&o.counting, "counting", false, "proxies tell every ten seconds what they count, on a second stream")
	fs.DurationVar(&o.limit, "phase-limit", time.Minute, "for each phase")
	fs.DurationVar(&o.total, "limit", 15*time.Minute, "for everything")
	fs.StringVar(&o.cpuprofile, "cpuprofile", "", "file for a profile of each server's processor; its name is appended")
	fs.StringVar(&o.memprofile, "memprofile", "", "file for a profile of each server's memory; its name is appended")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.total)
	defer cancel()
	return o.all(ctx, stdout, &locked{writer: stderr})
}

// locked is written to by this process and for the one that it starts.
type locked struct {
	mu     sync.Mutex
	writer io.Writer
}

// Write implements io.Writer.
func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writer.Write(b)
}

// check what can be known before anything is started.
func (o *options) check() error {
	if err := o.shape.Validate(); err != nil {
		return err
	}
	if o.rounds < 1 || o.part < 2 || o.churn < 1 {
		return fmt.Errorf("%d rounds, one of %d, churn of %d: want at least 1, 2 and 1", o.rounds, o.part, o.churn)
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("reading the limit of open files: %w", err)
	}
	return enough(o.shape.Proxies, files.Cur)
}

// enough says whether a process may have so many connections. When they are cut, the
// old ones may be open for a moment beside the new ones.
func enough(proxies int, files uint64) error {
	need := uint64(proxies)*3/2 + 100
	if files < need {
		return fmt.Errorf("%d proxies need %d open files in each process, and the limit is %d: raise it (ulimit -n %d), or take fewer", proxies, need, files, need)
	}
	return nil
}

// all servers, and what they came to. What there is is printed even if one fails.
func (o *options) all(ctx context.Context, stdout, stderr io.Writer) error {
	var results []*Result
	var errs []error
	for name := range strings.SplitSeq(o.servers, ",") {
		result, err := o.one(ctx, name, stderr)
		if err != nil {
			errs = append(errs, fmt.Errorf("loading %s: %w", name, err))
		}
		if result != nil {
			results = append(results, result)
			if _, err := io.WriteString(stdout, result.table()); err != nil {
				return fmt.Errorf("printing: %w", err)
			}
		}
	}
	if o.json != "" {
		b, err := json.MarshalIndent(results, "", "  ")
		errs = append(errs, cmp.Or(err, os.WriteFile(o.json, append(b, '\n'), 0o600)))
	}
	return errors.Join(errs...)
}
