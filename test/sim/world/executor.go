// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/controller/plan"
	"github.com/plumbline-dev/plumbline/internal/servertime"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

var scheme = sync.OnceValue(func() *apiruntime.Scheme {
	types := apiruntime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(types), v1alpha1.AddToScheme(types)); err != nil {
		panic(err)
	}
	log.SetLogger(logr.Discard())
	return types
})

// executor is the body of an executor: the real one, wired as the assessor wires
// it, with every call a message.
func (w *World) executor(ahead time.Duration) func(*schedule.Life) {
	return func(l *schedule.Life) {
		e, err := w.newExecutor(l, ahead)
		if err != nil {
			panic(err)
		}
		reconciler := &plan.Reconciler{Executor: e, Time: e.Time}
		due := map[types.NamespacedName]time.Time{}
		for _, p := range w.plans {
			due[types.NamespacedName{Namespace: namespace, Name: p.Name}] = time.Now()
		}
		sweep := time.Now().Add(time.Minute)
		asked := w.watch(asks)
		for {
			for _, p := range w.plans {
				key := types.NamespacedName{Namespace: namespace, Name: p.Name}
				if time.Now().Before(due[key]) {
					continue
				}
				due[key] = w.carry(l, reconciler, key)
			}
			if !time.Now().Before(sweep) {
				_ = e.ClearLeftovers(l.Context()) // it is called again
				sweep = time.Now().Add(time.Minute)
			}
			linger(l, due, sweep, asked)
		}
	}
}

// carry reconciles one plan, and says when to do so again.
func (w *World) carry(l *schedule.Life, r *plan.Reconciler, key types.NamespacedName) time.Time {
	result, err := r.Reconcile(l.Context(), reconcile.Request{NamespacedName: key})
	switch {
	case err != nil:
		return time.Now().Add(time.Duration(l.Rand().Int64N(int64(3 * time.Second))))
	case result.RequeueAfter > 0:
		return time.Now().Add(result.RequeueAfter)
	}
	return time.Now().Add(24 * time.Hour)
}

// asks says that a write is one that wakes plans: somebody asks something of one,
// or of a policy or ledger.
func asks(c apiserver.Commit) bool {
	return c.User != Executor && c.Subresource == "" && c.Resource.Group == group && c.Before != nil
}

// linger waits until something is due, or a watch tells that somebody asks
// something; that takes a while.
func linger(l *schedule.Life, due map[types.NamespacedName]time.Time, sweep time.Time, asked <-chan struct{}) {
	next := sweep
	for _, at := range due {
		if at.Before(next) {
			next = at
		}
	}
	if !l.Await(asked, max(time.Until(next), time.Millisecond)) {
		return
	}
	l.Sleep(time.Duration(l.Rand().Int64N(int64(2 * time.Second))))
	for key := range due {
		due[key] = time.Now()
	}
}

func (w *World) newExecutor(l *schedule.Life, ahead time.Duration) (*exec.Executor, error) {
	own := aheadOf{clock.RealClock{}, ahead}
	keeper := servertime.New(own)
	config := &rest.Config{Host: "http://sim", QPS: -1, Transport: l.Transport(w.Server, Executor, schedule.Wire{Change: w.mutant.change, Critical: writesTarget})}
	config.ContentType = "application/json"
	keeper.Watch(config)
	mapper := w.Server.Mapper()
	bounded := rest.CopyConfig(config)
	bounded.Timeout = protocol.RequestTimeout
	watching, err := client.NewWithWatch(bounded, client.Options{Scheme: scheme(), Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	live := w.mutant.wrapClient(watching)
	targets, err := exec.NewRESTTargets(config, mapper)
	if err != nil {
		return nil, err
	}
	e := &exec.Executor{
		Client: live, Targets: w.mutant.wrapTargets(targets), Bodies: plan.Bodies{Client: live},
		Guards: &plan.Guards{
			Client: live, Excluded: specguard.ExcludedNamespaces(namespaceOfPlumbline), System: specguard.System{Executor: Executor}, Clock: own,
		},
		Mirror: w.mirror(l), Observer: silent{}, Time: keeper, Namespace: namespaceOfPlumbline, Holder: l.Name,
		Evidence: &exec.Recorder{Writer: evidence.Writer{Store: &store{w.evidence, l}, Signer: w.keys.signer, Keys: w.keys.ring}, Builder: evidence.Builder{Version: "sim"}},
	}
	e.Evidence.Heads = exec.LedgerHeads{Executor: e}
	return e, nil
}

// writesTarget says that a request is the one that everything is about.
func writesTarget(r apiserver.Request) bool {
	return r.Writes() && strings.HasPrefix(r.Path, targetsPath)
}

// aheadOf is a clock that is wrong.
type aheadOf struct {
	clock.PassiveClock
	by time.Duration
}

func (c aheadOf) Now() time.Time                  { return c.PassiveClock.Now().Add(c.by) }
func (c aheadOf) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

type silent struct{}

func (silent) Stored(*v1alpha1.RemediationPlan, *v1alpha1.RemediationPlanStatus) {}
func (silent) LedgerStored(*v1alpha1.RemediationLedger)                          {}

// store is the store of records behind a network.
type store struct {
	evidence.Store
	l *schedule.Life
}

func (s *store) Create(ctx context.Context, name string, data []byte) error {
	_, err := schedule.Call(ctx, s.l, schedule.Message{What: "evidence create " + name, Writes: true}, func() (any, error) {
		return nil, s.Store.Create(context.WithoutCancel(ctx), name, data)
	})
	return storeError("create", name, err)
}

func (s *store) Read(ctx context.Context, name string) ([]byte, error) {
	data, err := schedule.Call(ctx, s.l, schedule.Message{What: "evidence read " + name}, func() ([]byte, error) {
		return s.Store.Read(context.WithoutCancel(ctx), name)
	})
	return data, storeError("read", name, err)
}

// List is never asked by an executor.
func (s *store) List(ctx context.Context, chain string) iter.Seq2[string, error] {
	return s.Store.List(ctx, chain)
}

func (s *store) Ready(ctx context.Context) error {
	_, err := schedule.Call(ctx, s.l, schedule.Message{What: "evidence ready"}, func() (any, error) {
		return nil, s.Store.Ready(context.WithoutCancel(ctx))
	})
	return storeError("probe", "", err)
}

func storeError(op, name string, err error) error {
	if err == nil || errors.Is(err, evidence.ErrExists) || errors.Is(err, evidence.ErrNotFound) {
		return err
	}
	return &evidence.StoreError{Op: op, Name: name, Reason: evidence.StoreUnreachable, Err: err}
}
