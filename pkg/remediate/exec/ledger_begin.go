// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// The scopes of a ledger.
const (
	scopeCluster     = "Cluster"
	scopeEnvironment = "Environment"
)

// errOtherScope says that an Environment has the name of the cluster's ledger.
var errOtherScope = errors.New("the ledger has another scope; rename the Environment")

func scopeOf(name string) string {
	if name == ClusterLedger {
		return scopeCluster
	}
	return scopeEnvironment
}

// makeLedger makes a ledger that grants nothing yet: one without a status was
// not begun. Somebody else may make it at the same time.
func (e *Executor) makeLedger(ctx context.Context, name string) (*v1alpha1.RemediationLedger, error) {
	l := &v1alpha1.RemediationLedger{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name},
		Spec:       v1alpha1.RemediationLedgerSpec{Scope: scopeOf(name)},
	}
	if err := e.Client.Create(ctx, l, client.FieldOwner(FieldManager)); err != nil {
		return nil, fmt.Errorf("making ledger %s: %w", name, err)
	}
	return e.begun(ctx, l)
}

// begun makes a ledger ready to grant: it begins, or a person's word that it may
// grant counts.
func (e *Executor) begun(ctx context.Context, l *v1alpha1.RemediationLedger) (*v1alpha1.RemediationLedger, error) {
	if l.Spec.Scope != scopeOf(l.Name) {
		return nil, fmt.Errorf("ledger %s: %w", l.Name, errOtherScope)
	}
	switch {
	case l.Status.Sequence == 0 && l.Name == ClusterLedger:
		return l, e.beginCluster(ctx, l)
	case l.Name != ClusterLedger:
		if err := e.beginEnvironment(ctx, l); err != nil {
			return nil, err
		}
	}
	if l.Spec.Override == nil {
		return l, nil
	}
	next, changed := ledger.Trust(&l.Status)
	if !changed {
		return l, nil
	}
	return l, e.storeLedger(ctx, l, next)
}

// beginCluster begins the cluster's ledger. That an Environment ever had one says
// that there was one of the cluster too, which is gone.
func (e *Executor) beginCluster(ctx context.Context, l *v1alpha1.RemediationLedger) error {
	var environments v1alpha1.EnvironmentList
	if err := e.Client.List(ctx, &environments); err != nil {
		return fmt.Errorf("listing Environments: %w", err)
	}
	first := true
	for i := range environments.Items {
		first = first && environments.Items[i].Status.LedgerUID == ""
	}
	next := ledger.Begin(e.Time.Now(), first)
	return e.storeLedger(ctx, l, &next)
}

// beginEnvironment begins the ledger of an Environment, which remembers its uid:
// another ledger of its name does not know what was done before it. The order of
// the two writes is such that dying in between never makes a past known that is
// not.
func (e *Executor) beginEnvironment(ctx context.Context, l *v1alpha1.RemediationLedger) error {
	environment := &v1alpha1.Environment{}
	err := e.Client.Get(ctx, types.NamespacedName{Name: l.Name}, environment)
	if apierrors.IsNotFound(err) && l.Status.Sequence > 0 {
		return nil // what is under way has to end all the same
	}
	if err != nil {
		return fmt.Errorf("reading Environment %s: %w", l.Name, err)
	}
	remembered := environment.Status.LedgerUID
	if remembered == string(l.UID) && l.Status.Sequence > 0 {
		return nil
	}
	if remembered == "" {
		// That of the cluster begins before any Environment remembers one: it takes
		// such a memory for a sign that it had a forerunner.
		if _, err := e.readLedger(ctx, ClusterLedger); err != nil {
			return err
		}
		if err := e.remember(ctx, environment, l); err != nil {
			return err
		}
		remembered = string(l.UID)
	}
	if l.Status.Sequence == 0 {
		next := ledger.Begin(e.Time.Now(), remembered == string(l.UID))
		if err := e.storeLedger(ctx, l, &next); err != nil {
			return err
		}
	}
	if remembered != string(l.UID) {
		return e.remember(ctx, environment, l)
	}
	return nil
}

// remember writes the one field of the status that the executor may write. An update would also count the
// namespaces of an Environment whose status the assessor has not written yet, and would be refused.
func (e *Executor) remember(ctx context.Context, environment *v1alpha1.Environment, l *v1alpha1.RemediationLedger) error {
	change, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": environment.ResourceVersion}, "status": map[string]any{"ledgerUID": l.UID},
	})
	if err != nil {
		return fmt.Errorf("encoding the ledger of Environment %s: %w", environment.Name, err)
	}
	if err := e.Client.Status().Patch(ctx, environment, client.RawPatch(types.MergePatchType, change), client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("remembering the ledger of Environment %s: %w", environment.Name, err)
	}
	return nil
}

func (e *Executor) storeLedger(ctx context.Context, l *v1alpha1.RemediationLedger, next *ledger.Status) error {
	l.Status = *next
	if err := e.Client.Status().Update(ctx, l, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("beginning ledger %s: %w", l.Name, err)
	}
	return nil
}
