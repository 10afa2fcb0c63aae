// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// H5 of the guard's review: while the guard of the platform was suspended, or did not
// compile, what the guard of a tenant trusts was authorized, and stayed so.
func TestAGuardThatIsOutOfForceGoesOnDecidingWhoIsTrusted(t *testing.T) {
	for name, out := range map[string]struct {
		ofForce string // a merge patch of the guard
		reads   string // a condition of the guard after that
	}{
		"it is suspended": {
			fmt.Sprintf(`{"spec":{"suspend":{"reason":"maintenance","endTime":%q}}}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)),
			"Suspended=True",
		},
		"its selector is no selector": {`{"spec":{"selector":{"matchLabels":{"app":"not a value!"}}}}`, "Stalled=True NotActive"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			start(t)
			g := w.UnderClusterGuard(w.Name)
			w.UnderGuard(func(g *v1alpha1.SpecGuard) { g.Spec.TrustedWriters.Users = []string{alice} })
			w.Deploy(ci, "web")
			w.UntilIs("web", "InSync")
			w.Must(w.As(bob).Patch(w.Ctx(), g, client.RawPatch(types.MergePatchType, []byte(out.ofForce))))
			w.guardReads(g, func() []metav1.Condition { return g.Status.Conditions }, out.reads)
			w.SetImage(alice, "web", "registry.example/evil:1")
			w.Until("web", "the write is drift", func(b *v1alpha1.Baseline) error {
				if b.Status.State != v1alpha1.StateDrifted || guarded.Authorized(b) != 1 {
					return fmt.Errorf("it is %q, and revision %d is authorized", guarded.Describe(b), guarded.Authorized(b))
				}
				return nil
			})
		})
	}
}
