// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"errors"
	"flag"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

var withGateway = []string{"--set", withMesh, "--set", "gateway.enabled=true"}

// The chart cannot call Go, so it has what package inject makes as files, with what
// is an installation's own replaced.
func TestTheFilesOfGatewaysAreThoseOfPackageInject(t *testing.T) {
	directory := filepath.Join(rendered.ChartDir(), "files", "gateway")
	raw, err := inject.Bootstrap(inject.BootstrapConfig{XDSHost: "xds.invalid", XDSPort: 15010, MaxConnections: 1_000_000_007})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join(directory, "bootstrap.json"), append(raw, '\n'))
	files, err := inject.SecretFiles(inject.Directory)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		golden.Check(t, filepath.Join(directory, name), content+"\n")
	}
}

func TestTheBootstrapOfGatewaysIsThatOfPackageInject(t *testing.T) {
	tests := map[string]struct {
		args []string
		want inject.BootstrapConfig
	}{
		"by default":        {nil, inject.BootstrapConfig{MaxConnections: 20_000}},
		"with two families": {[]string{"--set", "mesh.inject.ipv6=true", "--set", "gateway.maxConnections=7"}, inject.BootstrapConfig{IPv6: true, MaxConnections: 7}},
		"with a large number that no format may round": {[]string{"--set", "gateway.maxConnections=1000000"}, inject.BootstrapConfig{MaxConnections: 1_000_000}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.want.XDSHost, tc.want.XDSPort = "plumbline-xds."+rendered.Namespace+".svc", 15010
			want, err := inject.Bootstrap(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			files := convert[corev1.ConfigMap](t, find(t, template(t, append(tc.args, withGateway...)...), "ConfigMap", "plumbline-gateway")).Data
			var wanted, got any
			if err := errors.Join(json.Unmarshal(want, &wanted), json.Unmarshal([]byte(files["bootstrap.json"]), &got)); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(wanted, got); d != "" {
				t.Errorf("(-inject +chart):\n%s", d)
			}
		})
	}
}

func TestAGatewayHasWhatItsBootstrapNames(t *testing.T) {
	objects := template(t, withGateway...)
	d := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-gateway"))
	pod := d.Spec.Template.Spec
	container := pod.Containers[0]
	if container.VolumeMounts[0].MountPath != inject.Directory || !slices.Contains(container.Args, inject.Directory+"/bootstrap.json") {
		t.Errorf("its files are at %v, and its arguments %v", container.VolumeMounts, container.Args)
	}
	sources := pod.Volumes[0].Projected.Sources
	if token := sources[0].ServiceAccountToken; token == nil || token.Audience != identity.Audience || token.Path != "token" {
		t.Errorf("its token is %+v", sources[0])
	}
	if ca := sources[1].ConfigMap; ca == nil || ca.Name != inject.CAConfigMap || ca.Items[0].Key != inject.CAKey || ca.Items[0].Path != "ca.crt" {
		t.Errorf("its authority is %+v", sources[1])
	}
	find(t, objects, "ConfigMap", sources[2].ConfigMap.Name)
	if !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == "metrics" && p.ContainerPort == inject.StatusPort }) {
		t.Errorf("its ports are %v, want %d for probes and metrics", container.Ports, inject.StatusPort)
	}
	if d.Spec.Template.Labels[inject.LabelProxy] != inject.Gateway {
		t.Errorf("its labels are %v", d.Spec.Template.Labels)
	}
	if sleep := container.Lifecycle.PreStop.Sleep.Seconds; *pod.TerminationGracePeriodSeconds < sleep+10 {
		t.Errorf("it sleeps for %d s of the %d s that it has", sleep, *pod.TerminationGracePeriodSeconds)
	}
	for _, args := range [][]string{nil, {"--set", "gateway.maxConnections=7"}} {
		again := convert[appsv1.Deployment](t, find(t, templateAgain(t, append(args, withGateway...)...), "Deployment", "plumbline-gateway"))
		if same := cmp.Equal(d.Spec.Template.Annotations, again.Spec.Template.Annotations); same != (args == nil) {
			t.Errorf("with %v its pods are the same: %t", args, same)
		}
	}
}

// It is by namespace and account that the discovery server knows a gateway.
func TestTheDiscoveryServerKnowsTheGatewaysOfTheChart(t *testing.T) {
	objects := template(t, append([]string{"--set-json", `gateway.trustedCIDRs=["10.0.0.0/8","fd00::/8"]`, "--set", "gateway.trustedHops=1", "--set", "gateway.port=9090", "--set", "mesh.inject.ipv6=true"}, withGateway...)...)
	d := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-xds"))
	var o options.XDS
	fs := flag.NewFlagSet("xds", flag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(d.Spec.Template.Spec.Containers[0].Args); err != nil {
		t.Fatal(err)
	}
	want := options.Faces{IPv6: true, GatewayPort: 9090, GatewayAccount: "plumbline-gateway", GatewayTrustedCIDRs: "10.0.0.0/8,fd00::/8", GatewayHops: 1}
	if diff := cmp.Diff(want, o.Faces); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if trusted, err := o.Faces.Trusted(); err != nil || len(trusted) != 2 || trusted[0] != netip.MustParsePrefix("10.0.0.0/8") {
		t.Errorf("it trusts %v (%v)", trusted, err)
	}
	gateway := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-gateway"))
	if gateway.Spec.Template.Spec.ServiceAccountName != o.Faces.GatewayAccount || gateway.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort != 9090 {
		t.Errorf("the gateways are %s's, at %v", gateway.Spec.Template.Spec.ServiceAccountName, gateway.Spec.Template.Spec.Containers[0].Ports)
	}
}

func TestTheAccountOfGatewaysMayDoNothing(t *testing.T) {
	objects := template(t, withGateway...)
	find(t, objects, "ServiceAccount", "plumbline-gateway")
	for _, right := range rights(t, objects) {
		if strings.HasPrefix(right, "plumbline-gateway:") {
			t.Errorf("it has a right: %s", right)
		}
	}
}

func TestGatewaysNeedTheMesh(t *testing.T) {
	_, err := helm.Template(t.Context(), "--set", "gateway.enabled=true")
	if err == nil || !strings.Contains(err.Error(), "gateway.enabled needs mesh.enabled") {
		t.Errorf("the error is %v", err)
	}
	for _, args := range [][]string{nil, {"--set", withMesh}} {
		for _, object := range template(t, args...) {
			if strings.Contains(object.GetName(), "gateway") {
				t.Errorf("without gateways there is %s", rendered.ID(object))
			}
		}
	}
}

func TestTheServiceOfGateways(t *testing.T) {
	tests := map[string]struct {
		args []string
		want corev1.ServiceSpec
	}{
		"a load balancer that keeps addresses": {nil, corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal}},
		"one that lets some in":                {[]string{"--set-json", `gateway.service.sourceRanges=["192.0.2.0/24"]`}, corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, LoadBalancerSourceRanges: []string{"192.0.2.0/24"}}},
		"an address of the cluster":            {[]string{"--set", "gateway.service.type=ClusterIP"}, corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}},
		"of both families":                     {[]string{"--set", "gateway.service.type=ClusterIP", "--set", "mesh.inject.ipv6=true"}, corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := convert[corev1.Service](t, find(t, template(t, append(tc.args, withGateway...)...), "Service", "plumbline-gateway")).Spec
			got.Selector, got.Ports = nil, nil
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestOneGatewayDoesNotKeepANodeFromBeingDrained(t *testing.T) {
	two := convert[policyv1.PodDisruptionBudget](t, find(t, template(t, withGateway...), "PodDisruptionBudget", "plumbline-gateway"))
	if two.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("of two, %v may be away", two.Spec.MaxUnavailable)
	}
	for _, object := range rendered.OfKind(template(t, append([]string{"--set", "gateway.replicas=1"}, withGateway...)...), "PodDisruptionBudget") {
		if object.GetName() == "plumbline-gateway" {
			t.Error("one has a budget")
		}
	}
}

// From outside to the port of requests alone; and neither to the API server nor to
// nodes, should somebody take a gateway over.
func TestWhatAGatewayMayReach(t *testing.T) {
	policy := convert[networkingv1.NetworkPolicy](t, find(t, template(t, append([]string{"--set-json", `networkPolicy.metricsFrom=[{"namespaceSelector":{}}]`}, withGateway...)...), "NetworkPolicy", "plumbline-gateway")).Spec
	for _, rule := range policy.Ingress {
		if open := len(rule.From) == 0; open != (rule.Ports[0].Port.IntValue() == 8080) {
			t.Errorf("port %v is open: %t", rule.Ports[0].Port, open)
		}
	}
	for _, rule := range policy.Egress {
		dns := len(rule.Ports) == 2 && rule.Ports[0].Port.IntValue() == 53
		if !dns && (len(rule.To) != 1 || rule.To[0].NamespaceSelector == nil) {
			t.Errorf("it may reach %+v", rule)
		}
	}
}

func TestRefusedValuesOfGateways(t *testing.T) {
	for name, set := range map[string]string{
		"a port that needs a privilege":   "gateway.port=80",
		"the port of the status":          "gateway.port=15021",
		"a range that is none":            `gateway.trustedCIDRs=["10.0.0.1"]`,
		"another type":                    `gateway.service.type="ExternalName"`,
		"no connections":                  "gateway.maxConnections=0",
		"an end that load balancers miss": "gateway.drainSeconds=0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := helm.Template(t.Context(), append([]string{"--set-json", set}, withGateway...)...)
			var failed *rendered.Error
			if !errors.As(err, &failed) || !strings.Contains(failed.Stderr, "schema") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
