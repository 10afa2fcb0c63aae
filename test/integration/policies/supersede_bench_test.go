// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// BenchmarkRejectingReleases measures a change of a pod template in a namespace with so many releases that reject
// other revisions, all with a run under way. The API server evaluates the policy once for each. beside is the
// same change in a namespace without a release, in turn.
func BenchmarkRejectingReleases(b *testing.B) {
	for _, n := range []int{1, 100, 500} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { measureRejecting(b, n) })
	}
}

func measureRejecting(b *testing.B, n int) {
	names := map[bool]string{true: fmt.Sprintf("rejecting-%d-%d", n, time.Now().UnixNano()), false: fmt.Sprintf("beside-%d-%d", n, time.Now().UnixNano())}
	for _, namespace := range names {
		must(b, admin.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
		must(b, admin.Create(b.Context(), guarded.Workload(namespace, "web", "shop:1", 1)))
	}
	discovery := mustBe(b, finder.user, finder.groups...)
	var last *rejectingRun
	for i := range n {
		name := fmt.Sprintf("r-%d", i)
		last = &rejectingRun{release: rejectingRelease(name, situation{}), arms: map[string]client.Object{"green": guarded.Workload(names[true], name+"-green", "shop:2", 1)}}
		last.release.Namespace, last.release.Spec.Rollout.RequestedBy = names[true], ""
		must(b, admin.Create(b.Context(), last.release))
		last.release.Status = v1alpha1.ABReleaseStatus{Rollout: runningStatus(1)}
		must(b, discovery.Status().Update(b.Context(), last.release))
	}
	must(b, admin.Create(b.Context(), last.arms["green"]))
	last.awaitAnswer(b, "run 1 is Running") // the API server knows the last release, and those before
	took := map[bool][]time.Duration{}
	for i := 0; b.Loop(); i++ {
		for _, rejecting := range []bool{false, true} {
			object := guarded.Workload(names[rejecting], "web", "", 1)
			patch := client.RawPatch(types.StrategicMergePatchType, []byte(imagePatch(fmt.Sprintf("shop:%d", i+2))))
			began := time.Now()
			must(b, admin.Patch(b.Context(), object, patch))
			took[rejecting] = append(took[rejecting], time.Since(began))
		}
	}
	p50 := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2].Microseconds()) / 1000
	}
	b.ReportMetric(p50(took[true]), "p50-ms")
	b.ReportMetric(p50(took[false]), "beside-p50-ms")
	b.ReportMetric(0, "ns/op") // with one number for all of it nothing is said
}
