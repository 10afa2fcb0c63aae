// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parse(t *testing.T, args ...string) *Options {
	t.Helper()
	var o Options
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &o
}

func TestOptionsThatCannotWorkAreNamed(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"the defaults":                   {nil, ""},
		"hosts":                          {[]string{"--api-hosts=plumbline.example,plumbline.example:8443,10.0.0.1,[::1]:8443"}, ""},
		"an address without a port":      {[]string{"--api-address=here"}, "--api-address"},
		"a host that is an address":      {[]string{"--api-hosts=https://plumbline.example"}, "--api-hosts"},
		"a host with a star":             {[]string{"--api-hosts=*.example"}, "--api-hosts"},
		"a Secret that is none":          {[]string{"--api-tls-secret=A B"}, "--api-tls-secret"},
		"a mode that is none":            {[]string{"--api-certificate-mode=Files"}, "--api-certificate-mode"},
		"a settle without end":           {[]string{"--api-certificate-settle=2h"}, "--api-certificate-settle"},
		"a drain that outlasts the pod":  {[]string{"--api-drain-delay=30s"}, "--api-drain-delay"},
		"a drain that ends before it is": {[]string{"--api-drain-delay=-1s"}, "--api-drain-delay"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			errs := parse(t, tc.args...).Validate()
			if (len(errs) > 0) != (tc.want != "") || len(errs) > 0 && !strings.HasPrefix(errs[0].Field, tc.want) {
				t.Errorf("got %v, want %q", errs, tc.want)
			}
		})
	}
}

func TestTheNamesOfTheServiceAndTheHostsAreServed(t *testing.T) {
	o := parse(t, "--api-hosts=plumbline.example:8443,10.0.0.1")
	service := []string{"plumbline-api.plumbline-system.svc", "plumbline-api.plumbline-system.svc.cluster.local", "plumbline-api.plumbline-system"}
	if diff := cmp.Diff(append(service, "plumbline.example:8443", "10.0.0.1"), o.ServedHosts("plumbline-system")); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	// A certificate is of names, whatever the port.
	if diff := cmp.Diff(append(service, "10.0.0.1", "plumbline.example"), o.Certificates("plumbline-system", "pod").Names); diff != "" {
		t.Errorf("certified (-want +got):\n%s", diff)
	}
}
