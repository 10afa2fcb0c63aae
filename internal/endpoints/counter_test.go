// SPDX-License-Identifier: Apache-2.0

package endpoints_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/endpoints"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

func service() *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
}

func pod(namespace, version, ip string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod-" + ip, Labels: map[string]string{"version": version}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: ip}}, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func TestCount(t *testing.T) {
	broken := errors.New("broken")
	all := []client.Object{service(), pod("shop", "stable", "10.1.0.1"), pod("shop", "canary", "10.1.0.2"), pod("bank", "canary", "10.1.0.3")}
	tests := map[string]struct {
		objects     []client.Object
		fails       interceptor.Funcs
		quarantined func(context.Context, string) ([]traffic.Workload, error)
		want        map[string]traffic.Endpoints
		found       bool
		err         error
	}{
		"pods of the namespace count": {objects: all, want: map[string]traffic.Endpoints{"stable": {Ready: 1, Targets: 1}, "canary": {Ready: 1, Targets: 1}}, found: true},
		"one in quarantine is not ready": {objects: all, quarantined: func(_ context.Context, namespace string) ([]traffic.Workload, error) {
			return []traffic.Workload{{Namespace: namespace, Kind: "Pod", Name: "pod-10.1.0.2"}}, nil
		}, want: map[string]traffic.Endpoints{"stable": {Ready: 1, Targets: 1}, "canary": {Targets: 1}}, found: true},
		"without the Service nothing is found": {objects: all[1:]},
		"that it cannot be read is no absence": {objects: all, fails: interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		}}, err: broken},
		"pods that cannot be read are not none": {objects: all, fails: interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return broken
		}}, err: broken},
		"nor is an unknown quarantine none": {objects: all, quarantined: func(context.Context, string) ([]traffic.Workload, error) { return nil, broken }, err: broken},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := endpoints.Counter{Reader: fake.NewClientBuilder().WithObjects(tc.objects...).WithInterceptorFuncs(tc.fails).Build(), Quarantined: tc.quarantined}
			of, found, err := c.Count(t.Context(), routertest.Split(1, 1_000))
			if d := cmp.Diff(tc.want, of); d != "" {
				t.Errorf("the endpoints (-want +got):\n%s", d)
			}
			if found != tc.found || !errors.Is(err, tc.err) {
				t.Errorf("found is %v, want %v; the error is %v, want %v", found, tc.found, err, tc.err)
			}
		})
	}
}
