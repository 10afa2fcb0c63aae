// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkSurvey is a namespace of 10,000 Deployments, each written by CI, by a
// person lately, and by an autoscaler.
func BenchmarkSurvey(b *testing.B) {
	objects := make([]*metav1.ObjectMeta, 10_000)
	for i := range objects {
		objects[i] = object("shop", fmt.Sprintf("web-%05d", i), stamped("alice"),
			written("pipeline", 48*hour, manyFields(60)), written("kubectl-edit", hour, image), through("scale", "kube-controller-manager", 0, replicas))
	}
	b.ReportAllocs()
	for b.Loop() {
		r := survey(b, question(), Exists, objects...)
		if r.Objects != len(objects) {
			b.Fatal(r.Objects)
		}
	}
}
