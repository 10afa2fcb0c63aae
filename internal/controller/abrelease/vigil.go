// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// vigilEvery is how often a replica on vigil looks at runs, and asks whether the API server answers.
const vigilEvery = time.Second

// Vigil goes on judging the runs of a leader whose lease ended because the API server is away. It may order
// prepared rollbacks, and nothing else: no status, no ledger and no gate is written or asked. It ends when
// the API server answers, since then there is a leader again, and when this replica leads itself.
type Vigil struct {
	// Follow follows the other replicas until ctx ends.
	Follow func(ctx context.Context) error
	// Ask asks the API server something that it answers from its store.
	Ask   func(ctx context.Context) error
	Clock clock.WithTicker
	Log   logr.Logger

	mu sync.Mutex
	// last is the reconciler of the last time of leading; nil once the API server has answered since.
	last  *Reconciler
	leads bool
}

// lead notes who leads, until the function that it returns is called. A nil Vigil notes nothing.
func (v *Vigil) lead(r *Reconciler) (end func()) {
	if v == nil {
		return func() {}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last, v.leads = r, true
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.leads = false
	}
}

// pending is what a vigil would go on with; nil if there is nothing.
func (v *Vigil) pending() *Reconciler {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.leads {
		return nil
	}
	return v.last
}

// relieve ends the vigil for a reconciler, unless another one leads since.
func (v *Vigil) relieve(r *Reconciler) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == r && !v.leads {
		v.last = nil
	}
}

// Run keeps vigil until ctx ends, whenever it is needed.
func (v *Vigil) Run(ctx context.Context) {
	ticker := v.Clock.NewTicker(vigilEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if r := v.pending(); r != nil {
			if v.away(ctx) {
				v.keep(ctx, ticker, r)
			}
			v.relieve(r)
		}
	}
}

// away tells whether the API server does not answer: it is not reached, or its store is not.
func (v *Vigil) away(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, vigilEvery)
	defer cancel()
	err := v.Ask(ctx)
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return err != nil
	}
	return apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// keep looks at runs until the API server answers, or this replica leads.
func (v *Vigil) keep(ctx context.Context, ticker clock.Ticker, r *Reconciler) {
	v.Log.Info("the API server is away: runs are judged on, and their prepared rollbacks are ordered after a failure")
	ctx, stop := context.WithCancel(ctx)
	followed := make(chan error, 1)
	go func() { followed <- v.Follow(ctx) }()
	for watched := r.onVigil(); v.pending() == r && ctx.Err() == nil; {
		if err := watched.watch(ctx); err != nil {
			v.Log.Info("runs could not be judged; it is tried again", "error", err.Error())
		}
		if !v.away(ctx) {
			break
		}
		select {
		case <-ctx.Done():
		case <-ticker.C():
		}
	}
	stop()
	if err := <-followed; err != nil {
		v.Log.Info("the other replicas were not followed to the end", "error", err.Error())
	}
	v.Log.Info("the vigil ends: the API server answers, or this replica leads")
}

// onVigil is a reconciler that reads what was read last, and writes nothing.
func (r *Reconciler) onVigil() *Reconciler {
	return &Reconciler{
		Client: r.Client, Endpoints: r.Endpoints, Mesh: r.Mesh, Routers: r.Routers, Orders: r.Orders, Sequences: absent{}, Revisions: absent{},
		Installation: r.Installation, Recorder: r.Recorder, Clock: r.Clock, Log: r.Log, Times: r.Times,
	}
}

// watch looks at each run that has a prepared rollback.
func (r *Reconciler) watch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var all v1alpha1.ABReleaseList
	if err := r.Client.List(ctx, &all); err != nil {
		return fmt.Errorf("listing releases: %w", err)
	}
	var errs []error
	for i := range all.Items {
		if preparedOf(&all.Items[i].Status) > 0 {
			errs = append(errs, r.judgeAlone(ctx, &all.Items[i]))
		}
	}
	return errors.Join(errs...)
}

// judgeAlone takes the steps of a look that lead to an order.
func (r *Reconciler) judgeAlone(ctx context.Context, of *v1alpha1.ABRelease) error {
	name := client.ObjectKeyFromObject(of)
	s := r.subject(name)
	s.release = of
	for _, step := range []func(context.Context, *subject) error{r.findRivals, r.readSpec, r.look, r.decide, r.observe, r.adopt, r.roll, r.order} {
		if err := step(ctx, s); err != nil {
			return fmt.Errorf("judging release %s: %w", name, err)
		}
	}
	return nil
}

// absent is the API server while it is away. It implements Revisions and Sequences.
type absent struct{}

var errAbsent = errors.New("the API server is away")

// Read implements Revisions.
func (absent) Read(context.Context, traffic.Workload, []string) (rollout.Arm, error) {
	return rollout.Arm{}, errAbsent
}

// Hold implements Sequences: a decision that is not prepared waits for a leader.
func (absent) Hold(context.Context, types.NamespacedName, *v1alpha1.ABRelease, uint64) (uint64, error) {
	return 0, errAbsent
}

// Keep implements Sequences.
func (absent) Keep(context.Context, types.NamespacedName, *v1alpha1.ABRelease, uint64) error {
	return nil
}

// Settle implements Sequences.
func (absent) Settle(context.Context, types.NamespacedName) error { return errAbsent }
