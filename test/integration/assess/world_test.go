// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// The users of the tests.
const (
	ci    = guarded.CI
	alice = "alice"
	bob   = "bob"
	hpa   = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
)

// world is a guarded namespace.
type world struct {
	*guarded.Namespace
	t         *testing.T
	namespace string // its name
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return of(t, cluster.NewNamespace(t))
}

// in is the world of a test within a test.
func (w *world) in(t *testing.T) *world { return of(t, w.In(t)) }

func of(t *testing.T, n *guarded.Namespace) *world {
	return &world{Namespace: n, t: t, namespace: n.Name}
}

// Guard makes a guard that trusts CI and expects the autoscaler at replicas.
func (w *world) Guard(changes ...func(*v1alpha1.SpecGuard)) *v1alpha1.SpecGuard {
	w.t.Helper()
	return w.Namespace.Guard(withAutoscaler(changes)...)
}

// UnderGuard is Guard, and waits until it is in force and its second over.
func (w *world) UnderGuard(changes ...func(*v1alpha1.SpecGuard)) *v1alpha1.SpecGuard {
	w.t.Helper()
	return w.Namespace.UnderGuard(withAutoscaler(changes)...)
}

func withAutoscaler(changes []func(*v1alpha1.SpecGuard)) []func(*v1alpha1.SpecGuard) {
	return append([]func(*v1alpha1.SpecGuard){guarded.ExpectAutoscaler}, changes...)
}

// writeStatus does what the deployment controller does all the time.
func (w *world) writeStatus(name string, observed int) {
	w.t.Helper()
	w.Must(admin.Status().Patch(w.Ctx(), w.Named(name),
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"observedGeneration":%d}}`, observed))))
}

// look makes the assessor look at an object that did not change, as every write
// to its Baseline does.
func (w *world) look(name string) {
	w.t.Helper()
	b, err := w.Baseline(name)
	w.Must(err)
	w.Must(admin.Patch(w.Ctx(), b, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"looked-at":"%d"}}}`, time.Now().UnixNano()))))
}

// stays checks that a Baseline reads like this now, after the assessor has dealt
// with a change made later to another object, which proves that it had the time.
func (w *world) stays(name, want string) {
	w.t.Helper()
	witness := fmt.Sprintf("witness-%d", time.Now().UnixNano())
	w.Deploy(ci, witness)
	w.UntilIs(witness, "InSync")
	w.UntilIs(name, want)
}

func isGone(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return fmt.Errorf("it is still there")
	default:
		return err
	}
}
