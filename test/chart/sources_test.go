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

// assessing are the values with assessments, and these.
func assessing(more ...string) []string {
	return append([]string{"--set", "assessor.effectiveness.enabled=true"}, more...)
}

const alertmanagerURL = "metrics.alertmanager.url=https://alertmanager.monitoring:9093"

func TestAssessmentsAskWhatIsConfiguredAlone(t *testing.T) {
	plain := template(t, assessing()...)
	plainArgs := convert[appsv1.Deployment](t, find(t, plain, "Deployment", "plumbline-assessor")).Spec.Template.Spec.Containers[0].Args
	tests := map[string]struct {
		values        []string
		args, volumes []string
		// ports that any address can be reached at.
		ports    []int
		networks []string
	}{
		"nothing": {},
		"a Prometheus": {
			values: []string{"--set", prometheusURL}, args: []string{"--prometheus-url=https://prometheus.monitoring:9090"}, ports: []int{9090},
		},
		"an Alertmanager, with the usual watchdog": {
			values: []string{"--set", alertmanagerURL}, ports: []int{9093},
			args: []string{"--alertmanager-url=https://alertmanager.monitoring:9093", "--alertmanager-watchdog=Watchdog"},
		},
		"an Alertmanager without a watchdog": {
			values: []string{"--set", "metrics.alertmanager.url=http://alertmanager", "--set", "metrics.alertmanager.watchdog="}, ports: []int{80},
			args: []string{"--alertmanager-url=http://alertmanager"},
		},
		"both, with authorities and tokens": {
			values: []string{"--set", prometheusURL, "--set", alertmanagerURL, "--set", "metrics.prometheus.caSecret=a", "--set", "metrics.prometheus.tokenSecret=b",
				"--set", "metrics.alertmanager.caSecret=c", "--set", "metrics.alertmanager.tokenSecret=d", "--set", "metrics.alertmanager.ports={19093}"},
			args: []string{
				"--prometheus-url=https://prometheus.monitoring:9090", "--prometheus-ca-file=/var/run/secrets/plumbline-prometheus-ca/ca.crt", "--prometheus-token-file=/var/run/secrets/plumbline-prometheus-token/token",
				"--alertmanager-url=https://alertmanager.monitoring:9093", "--alertmanager-ca-file=/var/run/secrets/plumbline-alertmanager-ca/ca.crt", "--alertmanager-token-file=/var/run/secrets/plumbline-alertmanager-token/token", "--alertmanager-watchdog=Watchdog",
			},
			volumes: []string{"prometheus-ca/a", "prometheus-token/b", "alertmanager-ca/c", "alertmanager-token/d"}, ports: []int{9090, 19093},
		},
		"a network": {
			values: []string{"--set", alertmanagerURL, "--set", "metrics.allowedNetworks={10.0.0.0/8}"}, networks: []string{"10.0.0.0/8"},
			args: []string{"--alertmanager-url=https://alertmanager.monitoring:9093", "--alertmanager-watchdog=Watchdog"},
		},
		"authorities of servers outside": {
			values: []string{"--set", alertmanagerURL, "--set", "outbound.caSecret=roots"}, volumes: []string{"outbound-ca/roots"}, ports: []int{9093},
			args: []string{"--alertmanager-url=https://alertmanager.monitoring:9093", "--alertmanager-watchdog=Watchdog"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects := template(t, assessing(tc.values...)...)
			pod := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-assessor")).Spec.Template.Spec
			added := slices.DeleteFunc(slices.Clone(pod.Containers[0].Args), func(a string) bool { return slices.Contains(plainArgs, a) })
			var volumes []string
			for _, v := range pod.Volumes {
				if v.Secret == nil || v.Name == "digest-key" || strings.HasPrefix(v.Name, "redis") {
					continue
				}
				volumes = append(volumes, v.Name+"/"+v.Secret.SecretName)
				if !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name && m.ReadOnly }) {
					t.Errorf("volume %s is not mounted", v.Name)
				}
			}
			if diff := cmp.Diff([][]string{tc.args, tc.volumes}, [][]string{nonNil(added), volumes}); diff != "" {
				t.Errorf("flags and volumes (-want +got):\n%s", diff)
			}
			opened := slices.DeleteFunc(openings(t, objects, "assessor"), func(p int) bool { return slices.Contains(openings(t, plain, "assessor"), p) })
			if diff := cmp.Diff(tc.ports, append([]int(nil), opened...)); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.networks, networksOf(convert[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy", "plumbline-assessor")))); diff != "" {
				t.Errorf("networks (-want +got):\n%s", diff)
			}
			if gained := slices.DeleteFunc(rights(t, objects), func(line string) bool { return slices.Contains(rights(t, plain), line) }); len(gained) > 0 {
				t.Errorf("sources need no right, and these were given: %v", gained)
			}
		})
	}
}

// networksOf are those that a policy opens.
func networksOf(policy *networkingv1.NetworkPolicy) (networks []string) {
	for _, rule := range policy.Spec.Egress {
		for _, to := range rule.To {
			if to.IPBlock != nil {
				networks = append(networks, to.IPBlock.CIDR)
			}
		}
	}
	return networks
}

func TestSourcesThatCannotBeAreRefused(t *testing.T) {
	tests := map[string]struct {
		values []string
		fault  string
	}{
		"an Alertmanager without assessments": {[]string{"--set", alertmanagerURL}, "set assessor.effectiveness.enabled to true"},
		"a token without an Alertmanager":     {assessing("--set", "metrics.alertmanager.tokenSecret=token"), "of no use without a url"},
		"a token without TLS":                 {assessing("--set", "metrics.alertmanager.url=http://a", "--set", "metrics.alertmanager.tokenSecret=token"), "need https://"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := renderNow(t, true, tc.values...).err; err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("the error is %v, want %q", err, tc.fault)
			}
		})
	}
}
