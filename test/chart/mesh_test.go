// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

const withMesh = "mesh.enabled=true"

func TestWithoutTheMeshNothingOfItIsInstalled(t *testing.T) {
	for _, object := range template(t) {
		if strings.HasPrefix(object.GetName(), "plumbline-xds") {
			t.Errorf("the chart makes %s", rendered.ID(object))
		}
	}
}

// M12 of the review of the mesh: an uninstallation froze the proxies of all pods.
func TestTheNotesSayWhatComesBeforeTheMeshIsUninstalled(t *testing.T) {
	for name, args := range map[string][]string{"without a mesh": nil, "with a mesh": {"--set", withMesh}} {
		if got := strings.Contains(notesOf(t, args...), "kubectl get pods -A -l plumbline.dev/proxy"); got != (name == "with a mesh") {
			t.Errorf("%s: the notes name the pods: %v", name, got)
		}
	}
}

// What is added when proxies are served.
func TestWhoMayDoWhatWithTheMesh(t *testing.T) {
	without := rights(t, template(t))
	with := rights(t, template(t, "--set", withMesh))
	added := slices.DeleteFunc(slices.Clone(with), func(line string) bool { return slices.Contains(without, line) })
	golden.Check(t, filepath.Join("testdata", "rights-mesh.txt"), strings.Join(added, "\n")+"\n")
	if removed := slices.DeleteFunc(without, func(line string) bool { return slices.Contains(with, line) }); len(removed) > 0 {
		t.Errorf("the mesh takes rights from others: %q", removed)
	}
}

func TestProxiesAreServedDuringAnUpdate(t *testing.T) {
	objects := template(t, "--set", withMesh)
	d := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-xds"))
	want := &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1))}
	if diff := cmp.Diff(want, d.Spec.Strategy.RollingUpdate); diff != "" {
		t.Errorf("rolling update (-want +got):\n%s", diff)
	}
	if got := *d.Spec.Replicas; got != 2 {
		t.Errorf("replicas = %d, want 2", got)
	}
	grace := time.Duration(*d.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	if left := grace - options.MaxProxyDrainDelay; left < 10*time.Second {
		t.Errorf("after the longest drain %s are left of the grace period for streams to end", left)
	}
	budget := convert[policyv1.PodDisruptionBudget](t, find(t, objects, "PodDisruptionBudget", "plumbline-xds"))
	if diff := cmp.Diff(d.Spec.Selector, budget.Spec.Selector); diff != "" {
		t.Errorf("the disruption budget is for other pods (-deployment +budget):\n%s", diff)
	}
	// A replica that cannot see the cluster must not be started again for it.
	if got := d.Spec.Template.Spec.Containers[0].StartupProbe.HTTPGet.Path; got != "/healthz" {
		t.Errorf("the startup probe asks %s", got)
	}
}

// The process takes the arguments, and finds by them what the chart installs.
func TestTheDiscoveryServerFindsItsObjects(t *testing.T) {
	objects := template(t, "--set", withMesh)
	d := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-xds"))
	var o options.XDS
	fs := flag.NewFlagSet("xds", flag.ContinueOnError)
	o.AddFlags(fs)
	args := slices.Clone(d.Spec.Template.Spec.Containers[0].Args)
	variables := strings.NewReplacer("$(POD_NAMESPACE)", rendered.Namespace, "$(POD_NAME)", "plumbline-xds-0", "$(POD_IP)", "10.0.0.1")
	for i := range args {
		args[i] = variables.Replace(args[i])
	}
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	if errs := o.Validate(); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	find(t, objects, "Secret", o.TLSSecret)
	find(t, objects, "Lease", o.LeaseName)
	find(t, objects, "Lease", o.CertificateLeaseName)
	find(t, objects, "Deployment", o.DeploymentName)
	find(t, objects, "ConfigMap", inject.CAConfigMap)
	service := convert[corev1.Service](t, find(t, objects, "Service", o.ServiceName))
	if got := service.Spec.Ports[0].Port; !strings.HasSuffix(o.Address, ":15010") || got != 15010 {
		t.Errorf("it listens at %s and is called at port %d", o.Address, got)
	}
	if o.CertificateSettle < 2*time.Minute {
		t.Errorf("a bundle settles within %s: kubelets need up to two minutes to bring it into pods", o.CertificateSettle)
	}
}

func TestProxiesOfEveryNamespaceReachTheDiscoveryServer(t *testing.T) {
	objects := template(t, "--set", withMesh, "--set-json", `networkPolicy.metricsFrom=[{"namespaceSelector":{}}]`)
	d := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-xds"))
	policy := convert[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy", "plumbline-xds"))
	if diff := cmp.Diff(d.Spec.Selector.MatchLabels, policy.Spec.PodSelector.MatchLabels); diff != "" {
		t.Errorf("the policy is for other pods:\n%s", diff)
	}
	for _, rule := range policy.Spec.Ingress {
		switch port := rule.Ports[0].Port.IntValue(); {
		case port == 15010 && len(rule.From) > 0:
			t.Errorf("only %v may connect", rule.From)
		case port == 8080 && len(rule.From) != 1:
			t.Errorf("metrics may be read by %v", rule.From)
		}
	}
}

func TestWithCertManagerTheDiscoveryServerWritesNoSecret(t *testing.T) {
	objects := template(t, "--set", withMesh, "--set", "xds.certificate.mode=CertManager", "--set", "xds.certificate.issuerRef.name=ca")
	c := convert[certificate](t, find(t, objects, "Certificate", "plumbline-xds"))
	if c.Spec.SecretName != "plumbline-xds" || c.Spec.IssuerRef.Name != "ca" || !slices.Contains(c.Spec.DNSNames, "plumbline-xds."+c.Namespace+".svc") {
		t.Errorf("certificate %+v", c.Spec)
	}
	for _, object := range rendered.OfKind(objects, "Secret") {
		if object.GetName() == "plumbline-xds" {
			t.Errorf("the chart makes %s, which cert-manager makes", rendered.ID(object))
		}
	}
	for _, right := range rights(t, objects) {
		if strings.HasPrefix(right, "plumbline-xds:") && strings.Contains(right, "secrets") && containsAny(right, "create", "update", "patch", "delete") {
			t.Errorf("it may write: %s", right)
		}
	}
	d := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-xds"))
	if args := d.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--certificate-mode=CertManager") {
		t.Errorf("arguments %v", args)
	}
}
