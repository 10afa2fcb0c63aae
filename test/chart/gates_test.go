// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// delivering are the values with rollouts, and these.
func delivering(more ...string) []string {
	return append([]string{"--set", "mesh.enabled=true", "--set", "delivery.enabled=true"}, more...)
}

const prometheusURL = "metrics.prometheus.url=https://prometheus.monitoring:9090"

func TestGatesGetWhatIsConfiguredAlone(t *testing.T) {
	plainArgs := convert[appsv1.Deployment](t, find(t, template(t, delivering()...), "Deployment", "plumbline-xds")).Spec.Template.Spec.Containers[0].Args
	tests := map[string]struct {
		values []string
		// args are the flags, rights the lines, ports those of the policy, and volumes the names, that are added.
		args, rights, volumes []string
		ports                 []int
	}{
		"nothing": {},
		"a Prometheus": {
			values: []string{"--set", prometheusURL}, args: []string{"--prometheus-url=https://prometheus.monitoring:9090"}, ports: []int{9090},
		},
		"a Prometheus at the port of its scheme": {
			values: []string{"--set", "metrics.prometheus.url=http://prometheus/a"}, args: []string{"--prometheus-url=http://prometheus/a"}, ports: []int{80},
		},
		"a Prometheus whose pods have another port": {
			values: []string{"--set", prometheusURL, "--set", "metrics.prometheus.ports={9091}"}, args: []string{"--prometheus-url=https://prometheus.monitoring:9090"}, ports: []int{9091},
		},
		"a Prometheus with authorities and a token": {
			values:  []string{"--set", prometheusURL, "--set", "metrics.prometheus.caSecret=ca", "--set", "metrics.prometheus.tokenSecret=token"},
			args:    []string{"--prometheus-url=https://prometheus.monitoring:9090", "--prometheus-ca-file=/var/run/secrets/plumbline-prometheus-ca/ca.crt", "--prometheus-token-file=/var/run/secrets/plumbline-prometheus-token/token"},
			volumes: []string{"prometheus-ca/ca", "prometheus-token/token"}, ports: []int{9090},
		},
		"a Prometheus in a network of its own": {
			values: []string{"--set", prometheusURL, "--set", "metrics.allowedNetworks={10.0.0.0/8}"}, args: []string{"--prometheus-url=https://prometheus.monitoring:9090"}, // no port of any address
		},
		"queries of releases": {
			values: []string{"--set", prometheusURL, "--set", "delivery.inlineQueries=true"},
			args:   []string{"--prometheus-url=https://prometheus.monitoring:9090", "--inline-queries"}, ports: []int{9090},
		},
		"clones that are larger": {
			values: []string{"--set", "delivery.headroomPercent=50"}, args: []string{"--headroom-percent=50"},
		},
		"clones without headroom": {
			values: []string{"--set", "delivery.headroomPercent=0"}, args: []string{"--headroom-percent=0"},
		},
		"series of releases": {
			values: []string{"--set", "monitoring.releaseSeries=true"}, args: []string{"--release-series"},
		},
		"webhooks": {
			values:  []string{"--set", "delivery.gateSecrets={a,b}", "--set", "outbound.caSecret=roots", "--set", "notifications.allowedNetworks={10.0.0.0/8}", "--set", "notifications.plainHTTP=true"},
			args:    []string{"--gate-secrets=a,b", "--notify-allowed-networks=10.0.0.0/8", "--notify-plain-http=true"},
			rights:  []string{"plumbline-xds: get secrets named a,b, in plumbline-system"},
			volumes: []string{"outbound-ca/roots"}, ports: []int{443, 465, 587},
		},
		"routers": {
			values:  []string{"--set", "routers.enabled=true", "--set", "routers.secrets={edge}", "--set", "outbound.caSecret=roots", "--set", "notifications.allowedNetworks={10.0.0.0/8}"},
			args:    []string{"--routers", "--router-secrets=edge", "--notify-allowed-networks=10.0.0.0/8"},
			rights:  []string{"plumbline-xds: get secrets named edge, in plumbline-system", "plumbline-xds: get,list,watch trafficrouters.plumbline.dev, everywhere", "plumbline-xds: update trafficrouters.plumbline.dev/status, everywhere"},
			volumes: []string{"outbound-ca/roots"}, ports: []int{443, 465, 587},
		},
		"routers with Traefiks": {
			values: []string{"--set", "routers.enabled=true", "--set", "routers.traefik.enabled=true", "--set", "routers.traefik.apiPorts={9000}"},
			args:   []string{"--routers", "--traefik-address=:15011"},
			rights: []string{"plumbline-xds: get,list,watch trafficrouters.plumbline.dev, everywhere", "plumbline-xds: update trafficrouters.plumbline.dev/status, everywhere"},
			ports:  []int{443, 465, 587, 9000},
		},
		"routers without secrets": {
			values: []string{"--set", "routers.enabled=true"},
			args:   []string{"--routers"},
			rights: []string{"plumbline-xds: get,list,watch trafficrouters.plumbline.dev, everywhere", "plumbline-xds: update trafficrouters.plumbline.dev/status, everywhere"},
			ports:  []int{443, 465, 587},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			without, objects := template(t, delivering()...), template(t, delivering(tc.values...)...)
			pod := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-xds")).Spec.Template.Spec
			added := slices.DeleteFunc(slices.Clone(pod.Containers[0].Args), func(a string) bool { return slices.Contains(plainArgs, a) })
			var volumes []string
			for _, v := range pod.Volumes {
				if v.Secret == nil {
					continue
				}
				volumes = append(volumes, v.Name+"/"+v.Secret.SecretName)
				if !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name && m.ReadOnly }) {
					t.Errorf("volume %s is not mounted", v.Name)
				}
			}
			gained := slices.DeleteFunc(rights(t, objects), func(line string) bool { return slices.Contains(rights(t, without), line) })
			opened := slices.DeleteFunc(openings(t, objects, "xds"), func(p int) bool { return slices.Contains(openings(t, without, "xds"), p) })
			if diff := cmp.Diff([][]string{tc.args, tc.rights, tc.volumes}, [][]string{nonNil(added), nonNil(gained), volumes}); diff != "" {
				t.Errorf("flags, rights and volumes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.ports, append([]int(nil), opened...)); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
		})
	}
}

// nonNil has an empty list be as one that was not made.
func nonNil(list []string) []string { return append([]string(nil), list...) }

func TestGatesThatCannotBeAreRefused(t *testing.T) {
	tests := map[string]struct {
		values []string
		fault  string
	}{
		"a Prometheus without rollouts": {[]string{"--set", prometheusURL}, "set delivery.enabled or assessor.effectiveness.enabled to true"},
		"a token without a Prometheus":  {delivering("--set", "metrics.prometheus.tokenSecret=token"), "of no use without a url"},
		"routers without rollouts":      {[]string{"--set", "mesh.enabled=true", "--set", "routers.enabled=true"}, "set delivery.enabled to true, or routers.enabled to false"},
		"Traefiks without routers":      {delivering("--set", "routers.traefik.enabled=true"), "set routers.enabled to true, or routers.traefik.enabled to false"},
		"a token without TLS":           {delivering("--set", "metrics.prometheus.url=http://a", "--set", "metrics.prometheus.tokenSecret=token"), "need https://"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := renderNow(t, true, tc.values...).err; err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("the error is %v, want %q", err, tc.fault)
			}
		})
	}
}

// Traefiks are in any namespace. A replica that a Traefik polls asks the others at the same port.
func TestTraefiksAndReplicasReachThePortOfTraefiks(t *testing.T) {
	for name, tc := range map[string]struct {
		values []string
		opens  bool
	}{
		"by default":    {nil, false},
		"with Traefiks": {[]string{"--set", "routers.enabled=true", "--set", "routers.traefik.enabled=true"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := template(t, delivering(tc.values...)...)
			service := convert[corev1.Service](t, find(t, objects, "Service", "plumbline-xds"))
			policy := convert[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy", "plumbline-xds"))
			called := slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == 15011 && p.TargetPort.StrVal == "traefik" })
			from := slices.ContainsFunc(policy.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
				return r.Ports[0].Port.IntValue() == 15011 && len(r.From) == 0
			})
			to := slices.ContainsFunc(policy.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
				return len(r.To) == 1 && slices.ContainsFunc(r.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntValue() == 15011 })
			})
			if called != tc.opens || from != tc.opens || to != tc.opens {
				t.Errorf("the Service has the port: %t, Traefiks reach it: %t, and replicas: %t; want %t", called, from, to, tc.opens)
			}
		})
	}
}
