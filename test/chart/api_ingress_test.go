// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-dev/plumbline/internal/certs"
	"github.com/plumbline-dev/plumbline/internal/serve"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// exampleHost is that of the examples.
const exampleHost = "plumbline.example.com"

// route has the fields that the example uses of an HTTPRoute.
type route struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   named  `json:"metadata"`
	Spec       struct {
		ParentRefs []referred `json:"parentRefs"`
		Hostnames  []string   `json:"hostnames"`
		Rules      []struct {
			Matches []struct {
				Path struct {
					Type  string `json:"type"`
					Value string `json:"value"`
				} `json:"path"`
			} `json:"matches"`
			Timeouts struct {
				Request string `json:"request"`
			} `json:"timeouts"`
			BackendRefs []referred `json:"backendRefs"`
		} `json:"rules"`
	} `json:"spec"`
}

// backendTLS has the fields that the example uses of a BackendTLSPolicy.
type backendTLS struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   named  `json:"metadata"`
	Spec       struct {
		TargetRefs []referred `json:"targetRefs"`
		Validation struct {
			Hostname          string     `json:"hostname"`
			CACertificateRefs []referred `json:"caCertificateRefs"`
		} `json:"validation"`
	} `json:"spec"`
}

type named struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// referred is another object.
type referred struct {
	Group       string `json:"group"`
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	Namespace   string `json:"namespace"`
	SectionName string `json:"sectionName"`
	Port        int32  `json:"port"`
}

func example(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(rendered.RepositoryDir(), "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendered.Objects(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// servedAt renders the chart with the host of the examples.
func servedAt(t *testing.T) (objects []*unstructured.Unstructured, service *corev1.Service) {
	t.Helper()
	objects = template(t, "--set", withAPI, "--set", "api.hosts={"+exampleHost+"}")
	args := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-api")).Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--api-hosts="+exampleHost) {
		t.Errorf("the process does not serve the host: %q", args)
	}
	return objects, convert[corev1.Service](t, find(t, objects, "Service", "plumbline-api"))
}

func TestTheExampleIngressLeadsToTheAPI(t *testing.T) {
	_, service := servedAt(t)
	ingress := convert[networkingv1.Ingress](t, find(t, example(t, "api-ingress.yaml"), "Ingress", "plumbline-api"))
	if ingress.Namespace != service.Namespace || len(ingress.Spec.Rules) != 1 || ingress.Spec.Rules[0].Host != exampleHost || len(ingress.Spec.TLS) > 0 {
		t.Errorf("the Ingress is %+v", ingress)
	}
	backend := ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if backend.Name != service.Name || backend.Port.Name != service.Spec.Ports[0].Name {
		t.Errorf("the Ingress leads to %+v, and the Service is %s %+v", backend, service.Name, service.Spec.Ports)
	}
}

func TestTheExampleRouteVerifiesTheAPI(t *testing.T) {
	objects, service := servedAt(t)
	objects = append(objects, example(t, "api-httproute.yaml")...)
	r := convert[route](t, find(t, objects, "HTTPRoute", "plumbline-api"))
	if to := r.Spec.Rules[0].BackendRefs[0]; r.Metadata.Namespace != service.Namespace || to.Name != service.Name || to.Port != service.Spec.Ports[0].Port {
		t.Errorf("the route of namespace %s leads to %+v", r.Metadata.Namespace, to)
	}
	if diff := cmp.Diff([]string{exampleHost}, r.Spec.Hostnames); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	policy := convert[backendTLS](t, find(t, objects, "BackendTLSPolicy", "plumbline-api")).Spec
	if to := policy.TargetRefs[0]; to.Kind != "Service" || to.Name != service.Name {
		t.Errorf("the policy is about %+v", to)
	}
	if !slices.Contains(certs.ServiceNames(service.Name, service.Namespace, nil), policy.Validation.Hostname) {
		t.Errorf("the certificate of the API does not name %s", policy.Validation.Hostname)
	}
	if by := policy.Validation.CACertificateRefs[0]; by.Kind != "ConfigMap" || by.Name != serve.CAConfigMap {
		t.Errorf("the authority is in %+v", by)
	}
}

// The pods of an executor that serves records let the API in, which may reach those pods alone.
func TestTheAPIReachesTheExecutorThatServesRecords(t *testing.T) {
	for name, tc := range map[string]struct {
		values   []string
		executor string
	}{
		"an executor of its own":           {[]string{"--set", "executor.evidence.serve=true"}, "plumbline-executor"},
		"one process":                      {[]string{"--set", "executor.evidence.serve=true", "--set", "assessor.split=false", "--set", "assessor.replicas=1"}, "plumbline-assessor"},
		"an executor that serves none":     {nil, ""},
		"no executor, and records are set": {[]string{"--set", "executor.enabled=false", "--set", "executor.evidence.serve=true"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects := template(t, append([]string{"--set", withAPI, "--set", "executor.enabled=true"}, tc.values...)...)
			var selectors []labels.Selector
			for _, rule := range convert[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy", "plumbline-api")).Spec.Egress {
				for _, to := range rule.To {
					if len(rule.Ports) != 1 || rule.Ports[0].Port.IntValue() != 8081 || to.NamespaceSelector != nil || len(to.PodSelector.MatchLabels) == 0 {
						t.Errorf("the API may reach %+v", rule)
					}
					selectors = append(selectors, labels.SelectorFromSet(to.PodSelector.MatchLabels))
				}
			}
			var reached []string
			for _, o := range rendered.OfKind(objects, "Deployment") {
				pods := labels.Set(convert[appsv1.Deployment](t, o).Spec.Template.Labels)
				if slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(pods) }) {
					reached = append(reached, o.GetName())
				}
			}
			if diff := cmp.Diff(slices.DeleteFunc([]string{tc.executor}, func(name string) bool { return name == "" }), reached, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("reached (-want +got):\n%s", diff)
			}
			if tc.executor == "" {
				return
			}
			ingress := convert[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy", tc.executor)).Spec.Ingress
			if !slices.ContainsFunc(ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
				return rule.Ports[0].Port.IntValue() == 8081 && len(rule.From) == 0
			}) {
				t.Errorf("%s does not let the API in: %+v", tc.executor, ingress)
			}
		})
	}
}
