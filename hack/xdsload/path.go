// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	// profiles is where the replica puts its profiles; kept is empty, or the same if they are kept. The others are how many
	// it was asked for.
	profiles, kept       string
	memories, processors int
	figures              figures
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
	fs.StringVar(&p.kept, "profiles", "", "directory for profiles of the replica: its heap after each collection, and its processor for each row of the table")
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
	if err == nil {
		p.figures.print(p.stdout, p.shape, p.churn)
	}
	stop()
	p.fleet.Wait()
	return err
}

func (p *path) say(format string, args ...any) { fmt.Fprintf(p.log, format+"\n", args...) }

// serve starts the discovery server, with the two processors that a replica may have.
func (p *path) serve(ctx context.Context, directory string) error {
	if err := server.BuildWithTags(ctx, directory, "failpoints", "xds"); err != nil { // which obeys signals
		return err
	}
	p.profiles = cmp.Or(p.kept, directory)
	port, err := freeport.Claim()
	if err != nil {
		return err
	}
	address := fmt.Sprint("127.0.0.1:", port)
	p.process, err = server.StartWith([]string{"GOMAXPROCS=2", "PLUMBLINE_PROFILES=" + p.profiles}, filepath.Join(directory, "xds"),
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

// muster waits until all proxies have everything, and measures what they take.
func (p *path) muster(ctx context.Context) error {
	empty, err := p.collected(ctx)
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
	if n < p.shape.Proxies {
		return fmt.Errorf("%d proxies are missing; the server said:\n%s", p.shape.Proxies-n, p.process.Said())
	}
	settled, err := p.collected(ctx)
	if err != nil {
		return err
	}
	proxies := float64(p.shape.Proxies)
	p.figures.memory = (settled.resident - empty.resident) / proxies
	fmt.Fprintf(p.stdout, "%d proxies have everything after %s, with %s of processor each\n\n", n, short(at.Sub(began)), short((full.cpu-empty.cpu)/time.Duration(p.shape.Proxies)))
	table := rows{p.stdout, []string{"Memory of the replica", "without proxies, after collections", "with all, before", "with all, after", "of that each proxy"}}
	table.begin()
	for _, kind := range []struct {
		name string
		of   func(used) float64
	}{
		{"resident", func(u used) float64 { return u.resident }}, {"live heap", func(u used) float64 { return u.heap }},
		{"stacks", func(u used) float64 { return u.stacks }},
	} {
		table.row(kind.name, mebibytes(kind.of(empty)), mebibytes(kind.of(full)), mebibytes(kind.of(settled)), kibibytes((kind.of(settled)-kind.of(empty))/proxies))
	}
	table.row("goroutines", fmt.Sprint(empty.goroutines), fmt.Sprint(full.goroutines), fmt.Sprint(settled.goroutines), fmt.Sprintf("%.1f", (settled.goroutines-empty.goroutines)/proxies))
	fmt.Fprintln(p.stdout)
	return nil
}

// phases are decisions while nothing else happens, and while pods are replaced.
func (p *path) phases(ctx context.Context) error {
	table := rows{p.stdout, []string{
		"Decision", "Subscribers", "Decisions", "To the last confirmation: p50", "p99", "max", "Of that since a watch shows it: p50", "p99", "max", "Missing",
		"Cores: replica", "proxies", "whole machine", "Pods replaced", "Confirmations", "Processor for each",
	}}
	table.begin()
	for _, churn := range []int{0, p.churn} {
		for _, t := range []world.Target{world.One, world.Hundred} {
			if err := p.decisions(ctx, table, t, churn); err != nil {
				return err
			}
		}
	}
	return nil
}

// pause is how long it is waited between decisions, so that they do not wait for each other.
const pause = 200 * time.Millisecond

func (p *path) decisions(ctx context.Context, table rows, t world.Target, churn int) error {
	sees := func(proxy int) bool { return p.shape.Sees(p.shape.Group(proxy), t) }
	expect := p.shape.Subscribers(t, func(int) bool { return true })
	before, err := p.used(ctx)
	if err != nil {
		return err
	}
	if err := p.beginProfile(); err != nil {
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
	spent := after.less(before)
	q, w := quantile.Of(last), quantile.Of(since)
	table.row(fmt.Sprintf("%s, %d pods replaced a second", t, churn), fmt.Sprint(expect), fmt.Sprint(len(last)), short(q.P50), short(q.P99), short(q.Max),
		short(w.P50), short(w.P99), short(w.Max), fmt.Sprint(missing), spent.cores(spent.cpu), spent.cores(spent.own), spent.cores(spent.machine),
		fmt.Sprint(replaced), fmt.Sprintf("%.0f", spent.confirmed), short(spent.each()))
	if churn > 0 && t == world.Hundred {
		p.figures.cores, p.figures.decisions, p.figures.subscribers = spent.share(spent.cpu), q, expect
	}
	return p.endProfile(ctx)
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
