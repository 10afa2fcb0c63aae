// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/seed"
)

// TestAnObjectFullOfMetadataIsJudgedAsAnyOther: a tenant fills the metadata of a guarded
// object before the change. In a long run, that is ten times as much.
func TestAnObjectFullOfMetadataIsJudgedAsAnyOther(t *testing.T) {
	rotation.Share(t, 3)
	few := 10
	if os.Getenv(seed.Long) == "1" {
		few = 1
	}
	entries := func(n int) map[string]string {
		out := map[string]string{}
		for i := range n / few {
			out[fmt.Sprintf("k%x", i)] = ""
		}
		return out
	}
	for name, fill := range map[string]func(*metav1.ObjectMeta){
		"annotations": func(m *metav1.ObjectMeta) { m.Annotations = entries(40_000) },
		"labels":      func(m *metav1.ObjectMeta) { m.Labels = entries(60_000) },
		"owners": func(m *metav1.ObjectMeta) {
			for i := range 12_000 / few {
				m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: types.UID(fmt.Sprint("u", i))})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			start(t)
			w.UnderGuard()
			d := guarded.Deployment(w.namespace, "web")
			fill(&d.ObjectMeta)
			w.Must(w.As(ci).Create(w.Ctx(), d))
			w.UntilIs("web", "InSync")
			w.SetImage(alice, "web", "registry.example/evil:1")
			w.UntilIs("web", "Drifted: Changed "+guarded.ImagePath+" by alice (Untrusted, WriterStamp)")
			w.SetImage(ci, "web", "registry.example/shop:2")
			w.UntilIs("web", "InSync")
		})
	}
}
