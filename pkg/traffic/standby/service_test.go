// SPDX-License-Identifier: Apache-2.0

package standby_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/standby"
)

func workload(name string) traffic.Workload {
	return traffic.Workload{Namespace: "shop", Kind: "Deployment", Name: name}
}

func service(name string, selector map[string]string) *corev1.Service {
	http := "http"
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{ir.Managed: "true"}},
		Spec: corev1.ServiceSpec{
			Selector: selector, ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, AppProtocol: &http}},
		},
	}
}

func pod(of string, labels map[string]string) ir.Pod {
	return ir.Pod{Namespace: "shop", Name: of + "-x", Workload: workload(of), Labels: labels, Ready: true}
}

func TestOneManagedServiceIsBehindAStandby(t *testing.T) {
	web := map[string]string{"app": "web"}
	front := func() ir.Inputs {
		return ir.Inputs{Services: []*corev1.Service{service("front", web)}, Pods: []ir.Pod{pod("web", web), pod("api", map[string]string{"app": "api"})}}
	}
	of := func(service string, more func(*v1alpha1.ABRelease)) []v1alpha1.ABRelease {
		r := v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pay"}, Spec: v1alpha1.ABReleaseSpec{ServiceName: service}}
		if more != nil {
			more(&r)
		}
		return []v1alpha1.ABRelease{r}
	}
	for name, tc := range map[string]struct {
		in       func(*ir.Inputs)
		releases []v1alpha1.ABRelease
		want     string
	}{
		"nothing stands against it":           {},
		"no Service selects the pods":         {in: func(in *ir.Inputs) { in.Services[0].Spec.Selector = map[string]string{"app": "other"} }, want: "NoService: "},
		"the Service has no selector":         {in: func(in *ir.Inputs) { in.Services[0].Spec.Selector = nil }, want: "NoService: "},
		"the Service is not in the mesh":      {in: func(in *ir.Inputs) { in.Services[0].Labels = nil }, want: "NoService: "},
		"the Deployment has no pods":          {in: func(in *ir.Inputs) { in.Pods = in.Pods[1:] }, want: "NoService: "},
		"two Services select the pods":        {in: func(in *ir.Inputs) { in.Services = append(in.Services, service("back", web)) }, want: "SeveralServices: the Services back, front"},
		"the Service selects pods of others":  {in: func(in *ir.Inputs) { in.Pods = append(in.Pods, pod("old", web)) }, want: "SharedService: the Service front selects pods of Deployment old as well"},
		"proxies leave the Service alone":     {in: func(in *ir.Inputs) { in.Services[0].Spec.SessionAffinity = corev1.ServiceAffinityClientIP }, want: "ServiceRefused: proxies leave Service front alone"},
		"the Deployment is in quarantine":     {in: func(in *ir.Inputs) { in.Quarantined = []traffic.Workload{workload("web")} }, want: "InQuarantine: "},
		"an ABRelease divides the requests":   {releases: of("front", nil), want: "ServiceHasRelease: ABRelease pay"},
		"the ABRelease is one of another one": {releases: of("back", nil)},
		"an ABRelease of groups has no requests": {releases: of("", func(r *v1alpha1.ABRelease) {
			r.Spec.Variations = []v1alpha1.Variation{{Name: "a", Group: &v1alpha1.VariationGroup{Name: "web"}}}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			in := front()
			if tc.in != nil {
				tc.in(&in)
			}
			got, o := standby.FindService(in, tc.releases, workload("web"))
			switch {
			case tc.want == "" && (got == nil || got.Name != "front" || o.String() != ""):
				t.Errorf("got %v, %q", got, o)
			case tc.want != "" && (got != nil || !strings.HasPrefix(o.String(), tc.want)):
				t.Errorf("got %v, %q, want %q", got, o, tc.want)
			}
		})
	}
}
