// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

const whole = `proxyImage: docker.io/example/envoy:1
redirectImage: docker.io/example/redirect:1
pullPolicy: Always
mode: redirect
uid: 4711
concurrency: 4
resources: {requests: {cpu: 10m}, limits: {memory: 1Gi}}
tokenLifetime: 30m
xdsHost: plumbline-xds.elsewhere.svc
xdsPort: 15010
ipv6: true
`

func TestTheConfigurationIsReadAsItIsWritten(t *testing.T) {
	got, err := ParseConfig([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	want := inject.Config{
		ProxyImage: "docker.io/example/envoy:1", RedirectImage: "docker.io/example/redirect:1", PullPolicy: corev1.PullAlways,
		Mode: inject.Redirect, UID: 4711, Concurrency: 4, TokenLifetime: 30 * time.Minute,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
		},
		Bootstrap: inject.BootstrapConfig{XDSHost: "plumbline-xds.elsewhere.svc", XDSPort: 15010, IPv6: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAConfigurationThatIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ from, to, want string }{
		"a field that is misspelt":   {"proxyImage:", "proxyimage:", `unknown field "proxyimage"`},
		"one that is misspelt below": {"requests:", "request:", `unknown field "resources.request"`},
		"a field twice":              {"uid: 4711", "uid: 4711\nuid: 4711", `"uid" already set`},
		"a number as text":           {"4711", "root", "uid"},
		"no quantity":                {"10m", "much", "quantities"},
		"a time without unit":        {"30m", "30", "tokenLifetime"},
		"no image":                   {"docker.io/example/envoy:1", `""`, "proxyImage: needs an image"},
		"another mode":               {"mode: redirect", "mode: tproxy", `mode: "tproxy" is neither`},
		"no control plane":           {"plumbline-xds.elsewhere.svc", "https://xds", "xdsHost: "},
		"a port that is none":        {"15010", "70000", "xdsPort: "},
		"no YAML":                    {whole, "{", "yaml"},
		"nothing":                    {whole, "", "proxyImage: needs an image"},
	} {
		_, err := ParseConfig([]byte(strings.Replace(whole, tc.from, tc.to, 1)))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
