// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/control"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/fleet"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/issuer"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/proxy"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/quantile"
	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/world"
)

// trial is one server under load.
type trial struct {
	*options
	server *control.Server
	fleet  *fleet.Fleet
	result *Result
	log    io.Writer
}

// one server. Its process and all proxies have ended when it returns.
func (o *options) one(ctx context.Context, name string, stderr io.Writer) (result *Result, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("looking for this program: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := control.Start(ctx, program, o.serverArgs(name), []string{"GOMAXPROCS=2"}, stderr)
	if err != nil {
		return nil, err
	}
	defer func() {
		if stopped := server.Stop(); err == nil {
			err = stopped
		}
	}()
	certificate, err := x509.ParseCertificate(server.Certificate)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the server: %w", err)
	}
	by, err := issuer.Parse(server.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	f, err := fleet.New(fleet.Config{Shape: o.shape, Addresses: server.Addresses, Roots: roots, Token: by.Token, Counting: o.counting})
	if err != nil {
		return nil, err
	}
	t := &trial{options: o, server: server, fleet: f, result: &Result{Server: name, Shape: o.shape}, log: stderr}
	running, stop := context.WithCancel(ctx)
	err = t.phases(running)
	stop()
	f.Wait()
	return t.result, err
}

func (o *options) serverArgs(name string) []string {
	args := []string{
		"serve", "--server=" + name, fmt.Sprint("--proxies=", o.shape.Proxies), fmt.Sprint("--services=", o.shape.Services),
		fmt.Sprint("--dependencies=", o.shape.Dependencies), fmt.Sprint("--endpoints=", o.shape.Endpoints),
	}
	if o.cpuprofile != "" {
		args = append(args, "--cpuprofile="+o.cpuprofile+"."+name)
	}
	if o.memprofile != "" {
		args = append(args, "--memprofile="+o.memprofile+"."+name)
	}
	return args
}

// phases, one after the other. Without the start there is no point in the others.
func (t *trial) phases(ctx context.Context) error {
	if err := t.collect(&t.result.Empty); err != nil {
		return err
	}
	if err := t.phase("cold start", func(p *Phase) error {
		began := time.Now()
		t.fleet.Start(ctx)
		return t.complete(ctx, p, began)
	}); err != nil {
		return err
	}
	if n, _ := t.fleet.Complete(); n < t.shape.Proxies {
		return nil // the table says so
	}
	if err := t.memory(); err != nil {
		return err
	}
	for _, next := range t.rest(ctx) {
		if !strings.HasPrefix(next.name, t.options.phases) || ctx.Err() != nil {
			continue
		}
		if err := t.phase(next.name, next.do); err != nil {
			return err
		}
		settled, cancel := context.WithTimeout(ctx, t.limit)
		t.fleet.Await(settled) // who was replaced last
		cancel()
	}
	return t.collect(&t.result.End)
}

type named struct {
	name string
	do   func(*Phase) error
}

func (t *trial) rest(ctx context.Context) (phases []named) {
	everybody := func(int) bool { return true }
	for _, step := range []world.Step{world.Weight, world.Endpoint} {
		for _, target := range []world.Target{world.One, world.Hundred, world.All} {
			phases = append(phases, named{fmt.Sprintf("%s step, %s", step, target), func(p *Phase) error {
				return t.steps(p, target, step, everybody, nil)
			}})
		}
	}
	phases = append(phases,
		named{"reconnect with versions", func(p *Phase) error { return t.reconnect(ctx, p, false) }},
		named{"reconnect without versions", func(p *Phase) error { return t.reconnect(ctx, p, true) }})
	for _, mode := range []proxy.Mode{proxy.Slow, proxy.Refusing, proxy.Silent} {
		phases = append(phases, named{fmt.Sprintf("mode %s: weight step of others", mode), func(p *Phase) error {
			return t.misbehaving(p, mode)
		}})
	}
	return append(phases, named{"mode churn: weight step", func(p *Phase) error { return t.churning(ctx, p) }})
}

// phase measures what a phase costs.
func (t *trial) phase(name string, do func(*Phase) error) error {
	p := Phase{Name: name}
	before, client, err := t.measure()
	if err != nil {
		return err
	}
	if err := do(&p); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	after, clientAfter, err := t.measure()
	if err != nil {
		return err
	}
	p.ServerCPU, p.ClientCPU = after.CPU-before.CPU, clientAfter.CPU-client.CPU
	p.Sent, p.Received = after.Sent-before.Sent, after.Received-before.Received
	p.Troubles = difference(after.Troubles, before.Troubles)
	t.result.Phases = append(t.result.Phases, p)
	_, err = fmt.Fprintf(t.log, "%s: %s\n", t.result.Server, name)
	return err
}

func difference(after, before map[string]int64) map[string]int64 {
	d := map[string]int64{}
	for name, n := range after {
		if n != before[name] {
			d[name] = n - before[name]
		}
	}
	return d
}

func (t *trial) measure() (server, client control.Usage, err error) {
	a, err := t.server.Do(control.Command{Op: control.Measure})
	if err != nil {
		return server, client, err
	}
	client, err = control.Own(false)
	return a.Usage, client, err
}

func (t *trial) collect(into *control.Usage) error {
	a, err := t.server.Do(control.Command{Op: control.Collect})
	*into = a.Usage
	return err
}

// memory with all proxies connected, before and after a garbage collection.
func (t *trial) memory() (err error) {
	if t.result.Before, t.result.Client, err = t.measure(); err != nil {
		return err
	}
	if err := t.collect(&t.result.Full); err != nil {
		return err
	}
	t.result.Client, err = control.Own(true)
	return err
}

// complete waits until all proxies have everything.
func (t *trial) complete(ctx context.Context, p *Phase, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	n, at := t.fleet.Await(ctx)
	p.Took, p.Pushes, p.Missing = at.Sub(began), n, t.shape.Proxies-n
	return nil
}

// steps of one kind, one after the other, each acknowledged by all whom keep says yes to.
// If there is a pace, each waits for it first.
func (t *trial) steps(p *Phase, target world.Target, step world.Step, keep func(int) bool, pace <-chan time.Time) error {
	expect := t.shape.Subscribers(target, keep)
	var all []time.Duration
	began := time.Now()
	for range t.rounds {
		if time.Since(began) > t.limit {
			break
		}
		if pace != nil {
			<-pace
		}
		if _, err := t.server.Do(control.Command{Op: control.Publish, Target: target, Step: step, Expect: expect}); err != nil {
			return err
		}
		took, err := t.server.Do(control.Command{Op: control.Await, Within: t.limit - time.Since(began)})
		if err != nil {
			return err
		}
		p.Rounds++
		p.Missing += max(0, expect-len(took.Took))
		all = append(all, took.Took...)
	}
	p.Took, p.Pushes, p.Latency = time.Since(began), len(all), quantile.Of(all)
	return nil
}

// reconnect is what happens after a restart of the server: it cuts all connections,
// takes a step, and lets the proxies come back. It ends when each has acknowledged that
// step.
func (t *trial) reconnect(ctx context.Context, p *Phase, forget bool) error {
	ctx, cancel := context.WithTimeout(ctx, t.limit)
	defer cancel()
	open, err := t.fleet.Cut(ctx, forget)
	if err != nil {
		p.Missing, p.Note = t.shape.Proxies, err.Error()
		return nil
	}
	_, err = t.server.Do(control.Command{Op: control.Publish, Target: world.All, Step: world.Weight, Expect: t.shape.Proxies})
	began := time.Now()
	open()
	if err != nil {
		return err
	}
	took, err := t.server.Do(control.Command{Op: control.Await, Within: t.limit})
	if err != nil {
		return err
	}
	if forget {
		n, at := t.fleet.Await(ctx)
		p.Note = fmt.Sprintf("%d have everything after %s", n, short(at.Sub(began)))
	}
	p.Rounds, p.Pushes, p.Missing, p.Latency = 1, len(took.Took), t.shape.Proxies-len(took.Took), quantile.Of(took.Took)
	p.Took = p.Latency.Max
	return nil
}

// misbehaving takes steps that only those acknowledge who do not misbehave. The others are
// replaced afterwards: what was not answered may wait for that for ever.
func (t *trial) misbehaving(p *Phase, mode proxy.Mode) error {
	t.fleet.Behave(mode, t.part)
	err := t.steps(p, world.All, world.Weight, func(i int) bool { return !fleet.Chosen(i, t.part) }, nil)
	t.fleet.Behave(proxy.Normal, 0)
	t.fleet.Replace(t.part)
	return err
}

// churnPace is how long there is churn before each step.
const churnPace = 200 * time.Millisecond

// churning takes steps while proxies are replaced by new ones. One that is away when a
// step is taken acknowledges it when it is back; one that is never seen again counts as
// missing.
func (t *trial) churning(ctx context.Context, p *Phase) error {
	ctx, cancel := context.WithCancel(ctx)
	replaced := make(chan int)
	go func() { replaced <- t.fleet.Churn(ctx, t.churn, func(int) bool { return false }) }()
	pace := time.NewTicker(churnPace)
	defer pace.Stop()
	err := t.steps(p, world.All, world.Weight, func(int) bool { return true }, pace.C)
	cancel()
	p.Note = fmt.Sprintf("%d proxies replaced", <-replaced)
	return err
}
