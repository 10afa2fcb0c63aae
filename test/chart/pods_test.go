// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// pods are all pod specs of the objects, by the object they are in.
func pods(t *testing.T, objects []*unstructured.Unstructured) map[string]corev1.PodSpec {
	t.Helper()
	found := map[string]corev1.PodSpec{}
	for _, object := range objects {
		switch object.GetKind() {
		case "Deployment":
			found[rendered.ID(object)] = convert[appsv1.Deployment](t, object).Spec.Template.Spec
		case "Pod":
			found[rendered.ID(object)] = convert[corev1.Pod](t, object).Spec
		}
	}
	if len(found) < 3 {
		t.Fatalf("only %d pods found", len(found))
	}
	return found
}

func TestEveryPodMeetsPodSecurityRestricted(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, objects []*unstructured.Unstructured) {
		platform := path.Base(t.Name())
		for name, pod := range pods(t, objects) {
			want := &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), RunAsGroup: new(int64(65532)), FSGroup: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			}
			if platform == "openshift" { // its SCC sets them
				want.RunAsUser, want.RunAsGroup, want.FSGroup = nil, nil, nil
			}
			if diff := cmp.Diff(want, pod.SecurityContext); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			onNode := platform == "eks-cni" && strings.HasSuffix(name, "/plumbline-webhook")
			if pod.HostNetwork != onNode || pod.HostPID || pod.HostIPC {
				t.Errorf("%s shares a namespace of the host", name)
			}
			for _, volume := range pod.Volumes {
				evidence := volume.PersistentVolumeClaim != nil && volume.Name == "evidence" && pod.ServiceAccountName == "plumbline-executor"
				if volume.Secret == nil && volume.ConfigMap == nil && volume.Projected == nil && !evidence {
					t.Errorf("%s: volume %s is neither a Secret nor a ConfigMap, nor some of those and a token", name, volume.Name)
				}
			}
			for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
				want := &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				}
				if diff := cmp.Diff(want, container.SecurityContext); diff != "" {
					t.Errorf("%s, container %s (-want +got):\n%s", name, container.Name, diff)
				}
			}
		}
	})
}

func TestEveryContainerAsksForWhatItNeedsAndHasNoCPULimit(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, objects []*unstructured.Unstructured) {
		for name, pod := range pods(t, objects) {
			for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
				requests, limits := container.Resources.Requests, container.Resources.Limits
				if requests.Cpu().IsZero() || requests.Memory().IsZero() {
					t.Errorf("%s, container %s: requests %v", name, container.Name, requests)
				}
				if _, limited := limits[corev1.ResourceCPU]; limited {
					t.Errorf("%s, container %s has a CPU limit", name, container.Name)
				}
				if limit, limited := limits[corev1.ResourceMemory]; limited && limit.Cmp(*requests.Memory()) < 0 {
					t.Errorf("%s, container %s may use less memory than it asks for", name, container.Name)
				}
			}
		}
	})
}

func TestEveryServerIsProbed(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, objects []*unstructured.Unstructured) {
		for _, object := range rendered.OfKind(objects, "Deployment") {
			container := convert[appsv1.Deployment](t, object).Spec.Template.Spec.Containers[0]
			for kind, probe := range map[string]*corev1.Probe{"startup": container.StartupProbe, "readiness": container.ReadinessProbe, "liveness": container.LivenessProbe} {
				if probe == nil {
					t.Errorf("%s has no %s probe", object.GetName(), kind)
					continue
				}
				port := intstr.IntOrString{}
				switch {
				case probe.HTTPGet != nil:
					port = probe.HTTPGet.Port
				case probe.TCPSocket != nil:
					port = probe.TCPSocket.Port
				}
				if !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == port.StrVal }) {
					t.Errorf("%s: the %s probe asks port %q, which the container does not have", object.GetName(), kind, port.StrVal)
				}
			}
		}
	})
}

func TestTheWebhookIsNeverAwayDuringAnUpdate(t *testing.T) {
	objects := template(t)
	d := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-webhook"))
	want := &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1))}
	if diff := cmp.Diff(want, d.Spec.Strategy.RollingUpdate); diff != "" {
		t.Errorf("rolling update (-want +got):\n%s", diff)
	}
	if got := *d.Spec.Replicas; got != 2 {
		t.Errorf("replicas = %d, want 2", got)
	}
	if got := *d.Spec.Template.Spec.TerminationGracePeriodSeconds; got != 30 {
		t.Errorf("grace period = %d s, want 30", got)
	}
	if spread := d.Spec.Template.Spec.TopologySpreadConstraints; len(spread) != 1 || spread[0].WhenUnsatisfiable != corev1.ScheduleAnyway {
		t.Errorf("spread = %v, want one constraint that a single node can meet", spread)
	}
	budget := convert[policyv1.PodDisruptionBudget](t, find(t, objects, "PodDisruptionBudget", "plumbline-webhook"))
	if diff := cmp.Diff(d.Spec.Selector, budget.Spec.Selector); diff != "" {
		t.Errorf("the disruption budget is for other pods (-deployment +budget):\n%s", diff)
	}
}

func TestASingleReplicaDoesNotKeepANodeFromBeingDrained(t *testing.T) {
	objects := template(t, "--set", "webhook.replicas=1", "--set", "assessor.replicas=1")
	if budgets := rendered.OfKind(objects, "PodDisruptionBudget"); len(budgets) != 0 {
		t.Errorf("%d disruption budgets", len(budgets))
	}
}

func TestNetworkPolicies(t *testing.T) {
	objects := template(t)
	policies := map[string]*networkingv1.NetworkPolicy{}
	for _, object := range rendered.OfKind(objects, "NetworkPolicy") {
		policies[object.GetName()] = convert[networkingv1.NetworkPolicy](t, object)
	}
	for _, object := range rendered.OfKind(objects, "Deployment") {
		d := convert[appsv1.Deployment](t, object)
		policy := policies[d.Name]
		if policy == nil {
			t.Errorf("%s has no network policy", d.Name)
			continue
		}
		if diff := cmp.Diff(d.Spec.Selector.MatchLabels, policy.Spec.PodSelector.MatchLabels); diff != "" {
			t.Errorf("the policy of %s is for other pods:\n%s", d.Name, diff)
		}
		if len(policy.Spec.PolicyTypes) != 2 {
			t.Errorf("%s: the policy is for %v only", d.Name, policy.Spec.PolicyTypes)
		}
	}
	redis := policies["plumbline-redis"].Spec
	if len(redis.Egress) != 0 || len(redis.Ingress) != 1 || len(redis.Ingress[0].From) != 2 {
		t.Errorf("Redis may be reached by %v and may reach %v", redis.Ingress, redis.Egress)
	}
	external := convert[networkingv1.NetworkPolicy](t, find(t, template(t, "--set", "redis.enabled=false", "--set", "redis.external.address=[fd00::1]:6390"), "NetworkPolicy", "plumbline-assessor"))
	last := external.Spec.Egress[len(external.Spec.Egress)-1]
	if got := last.Ports[0].Port.IntValue(); got != 6390 {
		t.Errorf("egress to an external Redis is open at port %d, want 6390", got)
	}
}

func TestImages(t *testing.T) {
	digest := "sha256:" + strings.Repeat("ab", 32)
	tests := map[string]struct {
		args []string
		want map[string]string
	}{
		"by default, the chart's version": {nil, map[string]string{
			"plumbline-webhook": "docker.io/plumbline/webhook:0.1.0", "plumbline-assessor": "docker.io/plumbline/assessor:0.1.0", "plumbline-redis": "docker.io/plumbline/redis:0.1.0"}},
		"a mirror and a tag": {[]string{"--set", "image.registry=mirror.example.com/p", "--set", "image.tag=dev"}, map[string]string{
			"plumbline-webhook": "mirror.example.com/p/webhook:dev", "plumbline-assessor": "mirror.example.com/p/assessor:dev", "plumbline-redis": "mirror.example.com/p/redis:dev"}},
		"the official Redis": {[]string{"--set", "redis.image.repository=docker.io/library/redis", "--set-string", "redis.image.tag=8"}, map[string]string{
			"plumbline-redis": "docker.io/library/redis:8"}},
		"a digest wins over a tag": {[]string{"--set", "webhook.image.digest=" + digest, "--set", "image.tag=dev"}, map[string]string{
			"plumbline-webhook": "docker.io/plumbline/webhook@" + digest}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := template(t, test.args...)
			for deployment, want := range test.want {
				container := convert[appsv1.Deployment](t, find(t, objects, "Deployment", deployment)).Spec.Template.Spec.Containers[0]
				if container.Image != want {
					t.Errorf("%s runs %s, want %s", deployment, container.Image, want)
				}
				if container.ImagePullPolicy != corev1.PullIfNotPresent {
					t.Errorf("%s: pull policy %s", deployment, container.ImagePullPolicy)
				}
			}
		})
	}
}

func TestRedisArguments(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string
	}{
		"our own": {nil, []string{"--redis-address=plumbline-redis.plumbline-system.svc:6379", "--redis-username=plumbline",
			"--redis-key-prefix=plumbline", "--redis-timeout=50ms", "--redis-password-file=/var/run/secrets/plumbline-redis/password"}},
		"none": {[]string{"--set", "redis.enabled=false"}, []string{"--redis-address=", "--redis-key-prefix=plumbline", "--redis-timeout=50ms"}},
		"another without password": {[]string{"--set", "redis.enabled=false", "--set", "redis.external.address=r:1"},
			[]string{"--redis-address=r:1", "--redis-key-prefix=plumbline", "--redis-timeout=50ms"}},
		"another": {[]string{"--values", filepath.Join(rendered.ChartDir(), "ci", "full-values.yaml")}, []string{"--redis-address=redis.example.com:6380",
			"--redis-username=plumbline", "--redis-tls", "--redis-ca-file=/var/run/secrets/plumbline-redis-ca/ca.crt", "--redis-key-prefix=tenant-a", "--redis-timeout=1s", "--redis-password-file=/var/run/secrets/plumbline-redis/password"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := template(t, test.args...)
			for _, deployment := range []string{"plumbline-webhook", "plumbline-assessor"} {
				container := convert[appsv1.Deployment](t, find(t, objects, "Deployment", deployment)).Spec.Template.Spec.Containers[0]
				got := slices.DeleteFunc(slices.Clone(container.Args), func(arg string) bool { return !strings.HasPrefix(arg, "--redis") })
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", deployment, diff)
				}
			}
		})
	}
}
