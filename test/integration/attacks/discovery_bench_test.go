// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// processes are the accounts whose calls are counted.
var processes = []string{"assessor", "webhook"}

// BenchmarkDiscoveryCalls counts the calls of assessor and webhook to discovery in one
// minute, by the API server's own metric: a FlowSchema for each of the two accounts counts
// their calls. The reference has as many guards over a kind that is served.
func BenchmarkDiscoveryCalls(b *testing.B) {
	p := newPlace(b)
	countDiscovery(p)
	served := []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}
	cases := []struct {
		name  string
		kinds func(guard int) []v1alpha1.GuardedResource
		edits bool
	}{
		{"served kinds", func(int) []v1alpha1.GuardedResource { return served }, false},
		{"unknown kinds", unknownKindsOf, false},
		{"unknown kinds, one guard edited each second", unknownKindsOf, true},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			guards := makeGuards(b, c.kinds)
			for b.Loop() {
				before := discoveryCalls(p)
				p.minute(func(i int) error {
					if !c.edits {
						return nil
					}
					body := fmt.Appendf(nil, `{"spec":{"trustedWriters":{"users":["user-%d"]}}}`, i)
					return admin.Patch(b.Context(), guards[i%len(guards)].DeepCopy(), client.RawPatch(types.MergePatchType, body))
				})
				after := discoveryCalls(p)
				for i, process := range processes {
					b.ReportMetric(after[i]-before[i], process+"-calls/min")
					b.ReportMetric((after[i]-before[i])/manyGuards, process+"-calls/guard/min")
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// minute calls a function at each second of one minute.
func (p *place) minute(do func(i int) error) {
	p.t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for i := range 60 {
		<-tick.C
		p.must(do(i))
	}
}

// countDiscovery has the API server count the calls to discovery of each process apart.
func countDiscovery(p *place) {
	p.t.Helper()
	for _, process := range processes {
		schema := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "discovery-of-" + process}}
		schema.Spec = flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "workload-high"},
			MatchingPrecedence:         2,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindServiceAccount, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{
					Namespace: rendered.Namespace, Name: "plumbline-" + process,
				}}},
				NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"/api", "/api/*", "/apis", "/apis/*"}}},
			}},
		}
		p.must(admin.Create(p.t.Context(), schema))
		p.t.Cleanup(func() {
			if err := admin.Delete(context.Background(), schema); err != nil {
				p.t.Error(err)
			}
		})
		p.eventually("the calls of the "+process+" are counted", func() error {
			own := apiserver.Impersonate(config, "system:serviceaccount:"+rendered.Namespace+":plumbline-"+process)
			if err := getRaw(p.t.Context(), own, "/apis"); err != nil {
				return err
			}
			if n := discoveryCalls(p)[slices.Index(processes, process)]; n == 0 {
				return fmt.Errorf("a call is not counted")
			}
			return nil
		})
	}
}

func getRaw(ctx context.Context, config *rest.Config, path string) error {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return kube.RESTClient().Get().AbsPath(path).Do(ctx).Error()
}

// discoveryCalls are those of each process so far.
func discoveryCalls(p *place) []float64 {
	p.t.Helper()
	kube, err := kubernetes.NewForConfig(config)
	p.must(err)
	page, err := kube.RESTClient().Get().AbsPath("/metrics").DoRaw(p.t.Context())
	p.must(err)
	var out []float64
	for _, process := range processes {
		n, err := harness.SumSamples(string(page), "apiserver_flowcontrol_dispatched_requests_total", `flow_schema="discovery-of-`+process+`"`)
		p.must(err)
		out = append(out, n)
	}
	return out
}
