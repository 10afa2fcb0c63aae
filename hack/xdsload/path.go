// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/cluster"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/fleet"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/quantile"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/world"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// path is the way of a change through everything: API server, watch, look, stream, acknowledgment.
type path struct {
	shape         world.Shape
	rounds, churn int
	limit         time.Duration
	stdout, log   io.Writer
	cluster       *cluster.Cluster
	process       *server.Process
	fleet         *fleet.Fleet
	// shown are decisions when another watch than that of the replica shows them.
	shown <-chan cluster.Decision
}

// pathMain loads the discovery server as it is installed.
func pathMain(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	p := path{stdout: stdout, log: stderr}
	fs := flag.NewFlagSet("xdsload path", flag.ContinueOnError)
	fs.SetOutput(stderr)
	shapeFlags(fs, &p.shape)
	fs.IntVar(&p.shape.Scopes, "scopes", 0, "groups of proxies that depend on the same services of all namespaces")
	fs.IntVar(&p.rounds, "rounds", 50, "decisions, with and without churn")
	fs.IntVar(&p.churn, "churn", 40, "pods of services, and as many proxies, that are replaced per second")
	fs.DurationVar(&p.limit, "phase-limit", time.Minute, "for each wait")
	total := fs.Duration("limit", 15*time.Minute, "for everything")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if err := p.shape.Validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *total)
	defer cancel()
	ctrl.SetLogger(logr.Discard()) // which the API server's installation would ask for
	directory, err := os.MkdirTemp("", "xdsload")
	if err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	return errors.Join(p.run(ctx, directory), os.RemoveAll(directory))
}

// run everything, and end it.
func (p *path) run(ctx context.Context, directory string) (err error) {
	began := time.Now()
	p.cluster, err = cluster.Start(ctx, p.shape, directory)
	defer func() { err = errors.Join(err, p.cluster.Stop()) }()
	if err != nil {
		return err
	}
	p.say("the API server has it all after %s", short(time.Since(began)))
	if err := p.serve(ctx, directory); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.process.Stop()) }()
	running, stop := context.WithCancel(ctx)
	if p.shown, err = p.cluster.Follow(running); err == nil {
		err = p.muster(running)
	}
	if err == nil {
		err = p.phases(running)
	}
	stop()
	p.fleet.Wait()
	return err
}

func (p *path) say(format string, args ...any) { fmt.Fprintf(p.log, format+"\n", args...) }

// serve starts the discovery server, with the two processors that a replica may have.
func (p *path) serve(ctx context.Context, directory string) error {
	if err := server.Build(ctx, directory, "xds"); err != nil {
		return err
	}
	port, err := freeport.Claim()
	if err != nil {
		return err
	}
	address := fmt.Sprint("127.0.0.1:", port)
	p.process, err = server.StartWith([]string{"GOMAXPROCS=2"}, filepath.Join(directory, "xds"),
		"--kubeconfig="+p.cluster.Kubeconfig(), "--namespace="+cluster.Namespace, "--address="+address, "--lease-name="+cluster.Lease,
		"--server-names=127.0.0.1", "--verify-proxy-address=false", "--drain-delay=0s", "--log-level=warn")
	if err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	if err := p.process.Ready(ready); err != nil {
		return errors.Join(err, p.process.Stop())
	}
	p.fleet, err = p.enrol(ctx, address)
	if err != nil {
		return errors.Join(err, p.process.Stop())
	}
	return nil
}

// enrol the proxies.
func (p *path) enrol(ctx context.Context, address string) (*fleet.Fleet, error) {
	authority, err := p.cluster.Authority(ctx)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(authority)) {
		return nil, fmt.Errorf("no authority in %q", authority)
	}
	tokens, err := p.cluster.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	return fleet.New(fleet.Config{
		Shape: p.shape, Addresses: []string{address}, Roots: roots, Counting: true,
		Token: func(proxy int) (string, error) { return tokens[proxy], nil },
	})
}

// used is what the replica has used so far.
type used struct {
	at  time.Time
	cpu time.Duration
	// resident are all bytes of the process, stacks those of goroutines.
	resident, stacks float64
}

func (p *path) used(ctx context.Context) (u used, err error) {
	cpu, err := p.process.Metric(ctx, "process_cpu_seconds_total")
	if err != nil {
		return u, err
	}
	u.at, u.cpu = time.Now(), time.Duration(cpu*float64(time.Second))
	if u.resident, err = p.process.Metric(ctx, "process_resident_memory_bytes"); err != nil {
		return u, err
	}
	u.stacks, err = p.process.Metric(ctx, "go_memstats_stack_inuse_bytes")
	return u, err
}

// muster waits until all proxies have everything.
func (p *path) muster(ctx context.Context) error {
	empty, err := p.used(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	p.fleet.Start(ctx)
	waiting, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	n, at := p.fleet.Await(waiting)
	full, err := p.used(ctx)
	if err != nil {
		return err
	}
	each := 1024 * float64(p.shape.Proxies)
	fmt.Fprintf(p.stdout, "%d of %d proxies have everything after %s, with %s of processor; %.0f MiB, and %.0f before them: %.0f KiB for each, of which %.0f are stacks\n",
		n, p.shape.Proxies, short(at.Sub(began)), short(full.cpu-empty.cpu), full.resident/(1<<20), empty.resident/(1<<20),
		(full.resident-empty.resident)/each, (full.stacks-empty.stacks)/each)
	if n < p.shape.Proxies {
		return fmt.Errorf("%d proxies are missing; the server said:\n%s", p.shape.Proxies-n, p.process.Said())
	}
	return nil
}

// phases are decisions while nothing else happens, and while pods are replaced.
func (p *path) phases(ctx context.Context) error {
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "decision, to the last acknowledgment\tsubscribers\trounds\tp50\tp99\tmax\tsince a watch shows it: p50\tp99\tmax\tmissing\tcores\treplaced")
	for _, churn := range []int{0, p.churn} {
		for _, t := range []world.Target{world.One, world.Hundred} {
			if err := p.decisions(ctx, table, t, churn); err != nil {
				return errors.Join(err, table.Flush())
			}
		}
	}
	return table.Flush()
}

// pause is how long it is waited between decisions, so that they do not wait for each other.
const pause = 200 * time.Millisecond

func (p *path) decisions(ctx context.Context, table io.Writer, t world.Target, churn int) error {
	sees := func(proxy int) bool { return p.shape.Sees(p.shape.Group(proxy), t) }
	expect := p.shape.Subscribers(t, func(int) bool { return true })
	before, err := p.used(ctx)
	if err != nil {
		return err
	}
	end := p.churning(ctx, churn, sees)
	var last, since []time.Duration
	missing := 0
	next := time.NewTicker(pause)
	defer next.Stop()
	for range p.rounds {
		<-next.C
		took, shown, err := p.decide(ctx, t, expect)
		if err != nil {
			_, _ = end()
			return err
		}
		missing += expect - len(took)
		longest := quantile.Of(took).Max
		last, since = append(last, longest), append(since, longest-shown)
	}
	replaced, err := end()
	if err != nil {
		return err
	}
	after, err := p.used(ctx)
	if err != nil {
		return err
	}
	q, w := quantile.Of(last), quantile.Of(since)
	fmt.Fprintf(table, "%s, %d pods replaced a second\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%.2f\t%d\n",
		t, churn, expect, len(last), short(q.P50), short(q.P99), short(q.Max), short(w.P50), short(w.P99), short(w.Max), missing,
		(after.cpu-before.cpu).Seconds()/after.at.Sub(before.at).Seconds(), replaced)
	return nil
}

// decide, and say after what time each subscriber has acknowledged, and a watch has shown the decision. The
// time begins before the decision is written.
func (p *path) decide(ctx context.Context, t world.Target, expect int) (took []time.Duration, shown time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	sequence, began := p.cluster.Sequence(t)+1, time.Now()
	c := p.fleet.Watch(p.shape.Route(t), fmt.Sprintf("%d.", sequence), expect)
	if err := p.cluster.Step(ctx, t); err != nil {
		return nil, 0, err
	}
	took = c.Await(ctx)
	for {
		select {
		case d, open := <-p.shown:
			if !open {
				return nil, 0, errors.New("the watch of the decisions ended")
			}
			if d.Target == t && d.Sequence == sequence {
				return took, d.At.Sub(began), nil
			}
		case <-ctx.Done():
			return took, 0, fmt.Errorf("waiting for a watch to show a decision: %w", ctx.Err())
		}
	}
}

// churning replaces pods, and as many proxies that do not see a target, until end is called.
func (p *path) churning(ctx context.Context, perSecond int, keep func(int) bool) (end func() (int, error)) {
	if perSecond == 0 {
		return func() (int, error) { return 0, nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	proxies := make(chan int)
	go func() { proxies <- p.fleet.Churn(ctx, perSecond, keep) }()
	type result struct {
		n   int
		err error
	}
	pods := make(chan result)
	go func() {
		n, err := p.cluster.Replace(ctx, perSecond)
		pods <- result{n, err}
	}()
	return func() (int, error) {
		cancel()
		<-proxies
		r := <-pods
		return r.n, r.err
	}
}
