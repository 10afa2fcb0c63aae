// SPDX-License-Identifier: Apache-2.0

package envoyxds_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// hostile is a text that somebody hopes to mean more than it should, whole or as a part
// of one that is harmless.
func hostile(t *rapid.T, what string) string {
	parts := rapid.SampledFrom([]string{
		"x-user", "canary", "a", "\r\n", "\n", "\x00", "%REQ(:path)%", "%", `\1`, ".*", "(", "; Domain=example.com", "=", ",", `"`, " ", "|", ":", "ü", "\xff", "\u2028",
		"x-envoy-retry-on", "x-plb-visitor", "host", "cookie", "__Host-", strings.Repeat("n", 65), strings.Repeat("v", 257),
	})
	if rapid.IntRange(0, 4).Draw(t, what+" is any") == 0 {
		return string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, what))
	}
	return strings.Join(rapid.SliceOfN(parts, 1, 3).Draw(t, what), "")
}

// Whatever stands in a split: it is refused with a reason, or it becomes resources that
// Envoy's own rules accept, and in which no line ends.
func TestWhateverStandsInASplitItIsRefusedOrHarmless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := traffic.Weight(rapid.IntRange(-1, 10_001).Draw(t, "weight"))
		names := []string{rapid.SampledFrom([]string{"stable", hostile(t, "first")}).Draw(t, "stable"), rapid.SampledFrom([]string{"canary", hostile(t, "second")}).Draw(t, "canary")}
		split := traffic.Split{
			Namespace: "shop", Name: "release", Service: "web", Created: time.Unix(1, 0), Sequence: 1,
			Routing: traffic.Routing{
				Shares: traffic.Shares{{Variation: names[0], Weight: traffic.Total - weight}, {Variation: names[1], Weight: weight, Reserved: traffic.Weight(rapid.IntRange(0, 10_001).Draw(t, "reserved"))}},
				Key:    traffic.Key{Kind: traffic.KeyKind(rapid.IntRange(0, 4).Draw(t, "kind")), Name: hostile(t, "key")},
				Salt:   rapid.SampledFrom([]string{"s1", hostile(t, "salts")}).Draw(t, "salt"),
			},
		}
		if rapid.Bool().Draw(t, "forces") {
			split.Override = hostile(t, "override")
			split.Match = traffic.Match{Header: rapid.SampledFrom([]string{"x-group", hostile(t, "header")}).Draw(t, "match"), Values: map[string]string{hostile(t, "value"): names[1]}}
		}
		for _, name := range names {
			split.Variations = append(split.Variations, traffic.Variation{Name: name, Workload: &traffic.Workload{Namespace: "shop", Kind: "Deployment", Name: "web"}})
		}
		mesh := ir.Build(ir.Inputs{Splits: []traffic.Split{split}, Services: []*corev1.Service{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		}}})
		if len(mesh.Services) == 0 {
			if len(mesh.Problems) == 0 {
				t.Fatal("it is refused without a reason")
			}
			return
		}
		resources, err := envoyxds.Resources(mesh, nil)
		if err != nil {
			t.Fatalf("%+v was let through: %v", split, err)
		}
		for _, r := range resources {
			if r.Type == ads.Route && strings.ContainsAny(opened(t, r).(interface{ String() string }).String(), "\r\n\x00") {
				t.Fatalf("a line ends in %s", r.Name)
			}
		}
	})
}
