// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// AnchorConfigMap has the checkpoints of each chain, by the uid of its policy. The chart
// makes it, and lets the assessor alone write it.
const AnchorConfigMap = "plumbline-evidence-anchor"

// anchorEvery is how often the anchor is written at most.
const anchorEvery = 10 * time.Second

// Anchor notes how far the chains of evidence go, where the executor cannot write. Whoever
// has the token of the executor could else set the heads in the ledgers to match a history
// that was rewritten.
type Anchor struct {
	Client client.Client
	// Live reads past the cache: a ledger of before would look like one that was set back.
	Live      client.Reader
	Namespace string
	Clock     clock.PassiveClock
	// Contradicted counts the heads that contradict what was noted.
	Contradicted prometheus.Counter
	Log          logr.Logger

	written time.Time
}

// NewContradicted makes the counter of an anchor, and registers it.
func NewContradicted(registry prometheus.Registerer) (prometheus.Counter, error) {
	counter := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "plumbline_remediation_evidence_anchor_contradicted_total",
		Help: "Times that a ledger named an earlier end of a chain of evidence than the anchor, or another record there.",
	})
	if err := registry.Register(counter); err != nil {
		return nil, fmt.Errorf("registering the figure of the anchor: %w", err)
	}
	return counter, nil
}

// Register adds the controller to a manager.
func (a *Anchor) Register(mgr ctrl.Manager) error {
	moved := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.RemediationLedger)
		now, both := e.ObjectNew.(*v1alpha1.RemediationLedger)
		return ok && both && !slices.Equal(before.Status.Chains, now.Status.Chains)
	}}
	err := ctrl.NewControllerManagedBy(mgr).Named("evidence-anchor").
		For(&v1alpha1.RemediationLedger{}, builder.WithPredicates(moved)).Complete(a)
	if err != nil {
		return fmt.Errorf("registering the anchor of evidence: %w", err)
	}
	return nil
}

// Reconcile notes the heads of one ledger.
func (a *Anchor) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if wait := anchorEvery - a.Clock.Since(a.written); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	l := &v1alpha1.RemediationLedger{}
	if err := a.Live.Get(ctx, request.NamespacedName, l); err != nil || l.Namespace != a.Namespace {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	m := &corev1.ConfigMap{}
	if err := a.Live.Get(ctx, types.NamespacedName{Namespace: a.Namespace, Name: AnchorConfigMap}, m); err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the anchor of evidence: %w", err)
	}
	changed, err := a.note(m, l)
	if err != nil || !changed {
		return reconcile.Result{}, err
	}
	if err := a.Client.Update(ctx, m); err != nil {
		return reconcile.Result{}, fmt.Errorf("writing the anchor of evidence: %w", err)
	}
	a.written = a.Clock.Now()
	return reconcile.Result{}, nil
}

// note adds the heads of a ledger to the anchor.
func (a *Anchor) note(m *corev1.ConfigMap, l *v1alpha1.RemediationLedger) (changed bool, err error) {
	for _, c := range l.Status.Chains {
		points, err := evidence.ParseCheckpoints(m.Data[c.PolicyUID])
		if err != nil {
			return false, err
		}
		head := evidence.Head{Sequence: c.Sequence, Digest: c.Digest}
		if contradicts(points, head) {
			a.Log.Error(nil, "evidence.anchor.contradicted", "ledger", l.Name, "chain", c.PolicyUID, "sequence", c.Sequence)
			a.Contradicted.Inc()
		}
		next := evidence.AddCheckpoint(points, head, a.Clock.Now())
		if slices.Equal(next, points) {
			continue
		}
		raw, err := json.Marshal(next)
		if err != nil {
			return false, fmt.Errorf("encoding the anchor of evidence: %w", err)
		}
		if m.Data == nil {
			m.Data = map[string]string{}
		}
		m.Data[c.PolicyUID], changed = string(raw), true
	}
	return changed, nil
}

// contradicts says that a head went back, or that another record stands there. The executor
// does neither.
func contradicts(points []evidence.Checkpoint, head evidence.Head) bool {
	if len(points) == 0 {
		return false
	}
	last := points[len(points)-1].Head
	return head.Sequence < last.Sequence || head.Sequence == last.Sequence && head != last
}
