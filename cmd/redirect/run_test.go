// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/redirect"
)

// injected are the arguments that a pod is injected with.
func injected(t *testing.T, ipv6 bool, annotations map[string]string) []string {
	t.Helper()
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	pod.Annotations = annotations
	out, err := inject.Pod(pod, inject.Config{
		ProxyImage: "proxy", RedirectImage: "redirect",
		Bootstrap: inject.BootstrapConfig{XDSHost: "xds.example", XDSPort: 15010, IPv6: ipv6},
	}, inject.Redirect)
	if err != nil {
		t.Fatal(err)
	}
	if name := out.Spec.InitContainers[0].Name; name != inject.RedirectContainer {
		t.Fatalf("the first container is %s", name)
	}
	return out.Spec.InitContainers[0].Args
}

func TestTheArgumentsOfAnInjectedPodAreUnderstood(t *testing.T) {
	for name, tc := range map[string]struct {
		ipv6        bool
		annotations map[string]string
		want        redirect.Config
	}{
		"nothing is excluded": {want: redirect.Config{ProxyUID: 15700, CapturePort: inject.CapturePort}},
		"ports and ranges": {
			ipv6:        true,
			annotations: map[string]string{inject.AnnotationExcludePorts: "6379, 5432", inject.AnnotationExcludeCIDRs: "fd00::1/8,10.0.0.0/8"},
			want: redirect.Config{
				ProxyUID: 15700, CapturePort: inject.CapturePort, IPv6: true, ExcludePorts: []uint16{5432, 6379},
				ExcludeCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, check, err := parse(injected(t, tc.ipv6, tc.annotations), &bytes.Buffer{})
			if err != nil || check {
				t.Fatalf("check %t, %v", check, err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := redirect.Rules(got); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestArgumentsThatAreWrongChangeNothingAndAreSaidOnce(t *testing.T) {
	right := []string{"--proxy-uid=15700", "--capture-port=15001"}
	// If one were taken, the machine that tests would get the rules.
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a flag that does not exist": {[]string{"--table=x"}, "reading the arguments: flag provided but not defined: -table"},
		"a word that is no flag":     {[]string{"sh"}, `reading the arguments: "sh" is no flag`},
		"a value that cannot be":     {[]string{"--exclude-ports=x"}, `"x" is no port`},
		"a user that cannot be":      {[]string{"--proxy-uid=0"}, "making the rules: --proxy-uid: 0"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(over, append(right, tc.args...), &out)
			if err == nil || strings.Count(err.Error(), tc.want) != 1 {
				t.Errorf("%v, want %q in it once", err, tc.want)
			}
			if out.Len() > 0 {
				t.Errorf("it also told: %s", &out)
			}
		})
	}
}

func TestHelpNamesAllFlags(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	for _, name := range []string{"-proxy-uid user", "-capture-port port", "-ipv6", "-exclude-ports ports", "-exclude-cidrs ranges", "-check"} {
		if !strings.Contains(out.String(), name) {
			t.Errorf("it has not %q:\n%s", name, &out)
		}
	}
}
