// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// programs are the components that run a program of Plumbline for the cluster.
var programs = []string{"api", "assessor", "executor", "webhook", "xds"}

// allPrograms renders them all, with the same settings of each, as JSON.
func allPrograms(t *testing.T, settings map[string]string) []*unstructured.Unstructured {
	t.Helper()
	args := []string{"--set", "executor.enabled=true,mesh.enabled=true,api.enabled=true"}
	for _, program := range programs {
		for _, key := range slices.Sorted(maps.Keys(settings)) {
			args = append(args, "--set-json", program+"."+key+"="+settings[key])
		}
	}
	return template(t, args...)
}

func deployment(t *testing.T, objects []*unstructured.Unstructured, component string) *appsv1.Deployment {
	t.Helper()
	return convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-"+component))
}

func platform(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	return template(t, "--values", filepath.Join(rendered.ChartDir(), "ci", name+"-values.yaml"))
}

// refused holds that the chart itself refuses values, with words of its own.
func refused(t *testing.T, words string, args ...string) {
	t.Helper()
	_, err := helm.Template(t.Context(), args...)
	var failed *rendered.Error
	if !errors.As(err, &failed) || !strings.Contains(failed.Stderr, words) {
		t.Errorf("%v: the error is %v, want %q", args, err, words)
	}
}

func TestEachServiceAccountHasItsAnnotations(t *testing.T) {
	want := map[string]string{"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/a"}
	objects := allPrograms(t, map[string]string{"serviceAccount.annotations": `{"eks.amazonaws.com/role-arn":"arn:aws:iam::1:role/a"}`})
	for _, program := range programs {
		if diff := cmp.Diff(want, find(t, objects, "ServiceAccount", "plumbline-"+program).GetAnnotations()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", program, diff)
		}
	}
}

func TestExtrasReachTheContainersOfEachProgram(t *testing.T) {
	const volume = `[{"name":"extra","configMap":{"name":"extra"}}]`
	for key, value := range map[string]string{
		"extraEnv":          `[{"name":"HTTPS_PROXY","value":"http://proxy:3128"}]`,
		"extraVolumes":      volume,
		"extraVolumeMounts": `[{"name":"extra","mountPath":"/extra"}]`,
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			objects := allPrograms(t, map[string]string{key: value, "extraVolumes": volume})
			for _, program := range programs {
				pod := deployment(t, objects, program).Spec.Template.Spec
				container := pod.Containers[0]
				found := map[string]bool{
					"extraEnv":          slices.Contains(container.Env, corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy:3128"}),
					"extraVolumes":      slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "extra" && v.ConfigMap != nil }),
					"extraVolumeMounts": slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "extra" && m.MountPath == "/extra" }),
				}
				if !found[key] {
					t.Errorf("%s has not what the value says: %+v", program, pod)
				}
			}
		})
	}
}

func TestExtraObjectsAreRendered(t *testing.T) {
	objects := template(t, "--set-json", `extraObjects=[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"release":"{{ .Release.Name }}"}},"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: {{ .Release.Namespace }}}"]`)
	if got := convert[corev1.ConfigMap](t, find(t, objects, "ConfigMap", "a")).Data["release"]; got != rendered.Release {
		t.Errorf("the expression of the first is %q", got)
	}
	if got := find(t, objects, "ConfigMap", "b").GetNamespace(); got != rendered.Namespace {
		t.Errorf("the namespace of the second is %q", got)
	}
}

func TestPullSecretsReachEachPod(t *testing.T) {
	for name, pod := range pods(t, platform(t, "airgapped")) {
		if diff := cmp.Diff([]corev1.LocalObjectReference{{Name: "mirror"}}, pod.ImagePullSecrets); diff != "" && !strings.Contains(name, "install-test") {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, container := range pod.Containers {
			if !strings.HasPrefix(container.Image, "registry.example.com/") {
				t.Errorf("%s pulls %s", name, container.Image)
			}
		}
	}
}

func TestTheWebhookInTheNetworkOfItsNode(t *testing.T) {
	objects := platform(t, "eks-cni")
	d := deployment(t, objects, "webhook")
	pod := d.Spec.Template.Spec
	if !pod.HostNetwork || pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet || pod.PriorityClassName != "system-cluster-critical" {
		t.Errorf("host network %t, DNS %s, priority %s", pod.HostNetwork, pod.DNSPolicy, pod.PriorityClassName)
	}
	want := &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromInt32(1)), MaxSurge: new(intstr.FromInt32(0))}
	if diff := cmp.Diff(want, d.Spec.Strategy.RollingUpdate); diff != "" {
		t.Errorf("a second pod on a node would find its ports taken (-want +got):\n%s", diff)
	}
	for _, arg := range []string{"--port=9443", "--metrics-address=:9080", "--health-address=:9081"} {
		if !slices.Contains(pod.Containers[0].Args, arg) {
			t.Errorf("no %s in %v", arg, pod.Containers[0].Args)
		}
	}
	ports := map[string]int32{}
	for _, port := range pod.Containers[0].Ports {
		ports[port.Name] = port.ContainerPort
	}
	if diff := cmp.Diff(map[string]int32{"admission": 9443, "metrics": 9080, "health": 9081}, ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	// The pod has the address of its node, so no selector finds it.
	redis := convert[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy", "plumbline-redis"))
	if from := redis.Spec.Ingress[0].From; len(from) != 0 {
		t.Errorf("Redis admits %v alone", from)
	}
	refused(t, "10250 is the port of the kubelet", "--set", "webhook.hostNetwork=true")
}

func TestSpreadAndBudgetsOfEachComponent(t *testing.T) {
	for _, component := range append([]string{"gateway"}, programs...) {
		t.Run(component, func(t *testing.T) {
			t.Parallel()
			objects := template(t, "--set", "executor.enabled=true,executor.replicas=2,executor.evidence.url=s3://a,mesh.enabled=true,api.enabled=true,gateway.enabled=true",
				"--set", component+".podDisruptionBudget.maxUnavailable=50%",
				"--set-json", component+`.topologySpreadConstraints=[{"maxSkew":2,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule"}]`)
			d := deployment(t, objects, component)
			want := []corev1.TopologySpreadConstraint{{MaxSkew: 2, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: d.Spec.Selector.MatchLabels}}}
			if diff := cmp.Diff(want, d.Spec.Template.Spec.TopologySpreadConstraints); diff != "" {
				t.Errorf("spread (-want +got):\n%s", diff)
			}
			budget := convert[policyv1.PodDisruptionBudget](t, find(t, objects, "PodDisruptionBudget", "plumbline-"+component))
			if got := budget.Spec.MaxUnavailable.String(); got != "50%" {
				t.Errorf("an eviction may take %s", got)
			}
		})
	}
}

func TestTheServiceMonitorFindsExactlyThePodsWithMetrics(t *testing.T) {
	objects := template(t, "--set", "monitoring.serviceMonitor.enabled=true,monitoring.serviceMonitor.labels.release=prometheus,monitoring.serviceMonitor.interval=15s,selftest.enabled=true")
	monitor := convert[serviceMonitor](t, find(t, objects, "ServiceMonitor", "plumbline"))
	service := convert[corev1.Service](t, find(t, objects, "Service", "plumbline-metrics"))
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := monitor.Spec.Endpoints[0]
	if !selector.Matches(labelSet(service.Labels)) || endpoint.Port != service.Spec.Ports[0].Name || endpoint.Interval != "15s" || monitor.Labels["release"] != "prometheus" {
		t.Errorf("the monitor %+v does not select the Service %+v", monitor, service)
	}
	for _, other := range rendered.OfKind(objects, "Service") {
		if other.GetName() != service.Name && selector.Matches(labelSet(other.GetLabels())) {
			t.Errorf("the monitor selects the Service %s", other.GetName())
		}
	}
	for _, object := range rendered.OfKind(objects, "Deployment") {
		for key, value := range service.Spec.Selector {
			if convert[appsv1.Deployment](t, object).Spec.Template.Labels[key] != value {
				t.Errorf("the Service does not select the pods of %s by %s", object.GetName(), key)
			}
		}
	}
	refused(t, "Prometheus would scrape each pod twice", "--set", "monitoring.serviceMonitor.enabled=true,monitoring.podMonitor.enabled=true")
}

func TestAnotherRedisBehindSentinelsOrAsACluster(t *testing.T) {
	for name, test := range map[string]struct {
		args    []string
		ports   []int
		volumes map[string]string // Secret and its keys, by volume
	}{
		"sentinel": {
			[]string{"--redis-address=sentinel-0.redis:26379,sentinel-1.redis:26379,sentinel-2.redis:26379", "--redis-mode=Sentinel", "--redis-master-name=plumbline",
				"--redis-sentinel-password-file=/var/run/secrets/plumbline-redis/sentinel-password",
				"--redis-client-certificate-file=/var/run/secrets/plumbline-redis-client/tls.crt", "--redis-client-key-file=/var/run/secrets/plumbline-redis-client/tls.key"},
			[]int{26379, 6379},
			map[string]string{"redis-password": "redis: redis-password sentinel-password", "redis-ca": "redis-ca: ca.crt", "redis-client": "redis-client: tls.crt tls.key"},
		},
		"rediscluster": {
			[]string{"--redis-address=redis-0.redis:6379,redis-1.redis:6379,redis-2.redis:6379", "--redis-mode=Cluster"},
			[]int{6379},
			map[string]string{"redis-password": "redis: password"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := platform(t, name)
			for _, component := range []string{"webhook", "assessor"} {
				pod := deployment(t, objects, component).Spec.Template.Spec
				for _, arg := range test.args {
					if !slices.Contains(pod.Containers[0].Args, arg) {
						t.Errorf("%s has no %s in %v", component, arg, pod.Containers[0].Args)
					}
				}
				if diff := cmp.Diff(test.volumes, secretVolumes(&pod)); diff != "" {
					t.Errorf("%s: volumes (-want +got):\n%s", component, diff)
				}
				var ports []int
				policy := convert[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy", "plumbline-"+component))
				for _, port := range policy.Spec.Egress[len(policy.Spec.Egress)-1].Ports {
					ports = append(ports, port.Port.IntValue())
				}
				if diff := cmp.Diff(test.ports, ports); diff != "" {
					t.Errorf("%s may reach (-want +got):\n%s", component, diff)
				}
			}
		})
	}
}

// secretVolumes are the mounted volumes of Redis.
func secretVolumes(pod *corev1.PodSpec) map[string]string {
	found := map[string]string{}
	for _, volume := range pod.Volumes {
		if !strings.HasPrefix(volume.Name, "redis-") {
			continue
		}
		keys := []string{}
		for _, item := range volume.Secret.Items {
			keys = append(keys, item.Key)
		}
		found[volume.Name] = volume.Secret.SecretName + ": " + strings.Join(keys, " ")
	}
	maps.DeleteFunc(found, func(name, _ string) bool {
		return !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name })
	})
	return found
}
