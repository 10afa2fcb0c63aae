// SPDX-License-Identifier: Apache-2.0

package options

import (
	"flag"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidateXDS(t *testing.T) {
	tests := map[string]struct {
		args []string
		want []string // the paths of the errors
	}{
		"the defaults":                           {},
		"an address without a port":              {args: []string{"--address=here"}, want: []string{"--address"}},
		"names that are none":                    {args: []string{"--tls-secret=_", "--service-name=", "--lease-name=-", "--certificate-lease-name=a b", "--deployment-name=x_"}, want: []string{"--certificate-lease-name", "--deployment-name", "--lease-name", "--service-name", "--tls-secret"}},
		"one lease for two things":               {args: []string{"--lease-name=a", "--certificate-lease-name=a"}, want: []string{"--certificate-lease-name"}},
		"a certificate mode that is none":        {args: []string{"--certificate-mode=Manual"}, want: []string{"--certificate-mode"}},
		"a bundle that never settles":            {args: []string{"--certificate-settle=0s"}, want: []string{"--certificate-settle"}},
		"a drain that outlasts the grace period": {args: []string{"--drain-delay=30s"}, want: []string{"--drain-delay"}},
		"proxies shown at other addresses":       {args: []string{"--admin-address=:8083"}, want: []string{"--admin-address"}},
		"proxies shown to the network":           {args: []string{"--admin-address=10.0.0.1:8083"}, want: []string{"--admin-address"}},
		"proxies shown at a name":                {args: []string{"--admin-address=localhost:8083"}, want: []string{"--admin-address"}},
		"proxies shown at a loopback address":    {args: []string{"--admin-address=[::1]:9000"}},
		"proxies shown nowhere":                  {args: []string{"--admin-address="}},
		"a gateway that cannot be":               {args: []string{"--gateway-port=80", "--gateway-account=A", "--gateway-trusted-cidrs=10.0.0.1", "--gateway-hops=-1"}, want: []string{"--gateway-account", "--gateway-hops", "--gateway-port", "--gateway-trusted-cidrs"}},
		"a gateway at the proxy's own port":      {args: []string{"--gateway-port=15021"}, want: []string{"--gateway-port"}},
		"a gateway that can":                     {args: []string{"--gateway-port=8080", "--gateway-trusted-cidrs=10.0.0.0/8,fd00::/8", "--gateway-hops=1", "--ipv6"}},
		"a Prometheus that cannot be":            {args: []string{"--prometheus-url=prometheus:9090"}, want: []string{"--prometheus-url"}},
		"a token for everybody to read":          {args: []string{"--prometheus-url=http://prometheus", "--prometheus-token-file=/dev/null", "--prometheus-ca-file=/dev/null"}, want: []string{"--prometheus-token-file"}},
		"authorities without TLS":                {args: []string{"--prometheus-url=http://prometheus", "--prometheus-ca-file=/dev/null"}, want: []string{"--prometheus-ca-file"}},
		"files without a Prometheus":             {args: []string{"--prometheus-token-file=/dev/null", "--prometheus-ca-file=/none"}, want: []string{"--prometheus-ca-file", "--prometheus-token-file"}},
		"a Prometheus that can be":               {args: []string{"--prometheus-url=https://prometheus:9090/a", "--prometheus-ca-file=/dev/null", "--prometheus-token-file=/dev/null", "--inline-queries"}},
		"clones that lack pods":                  {args: []string{"--headroom-percent=-1"}, want: []string{"--headroom-percent"}},
		"clones that are far too large":          {args: []string{"--headroom-percent=201"}, want: []string{"--headroom-percent"}},
		"clones without headroom":                {args: []string{"--headroom-percent=0"}},
		"gates that cannot be":                   {args: []string{"--gate-secrets=a,b_c", "--notify-allowed-networks=10.0.0.1"}, want: []string{"--gate-secrets", "--notify-allowed-networks"}},
		"gates that can":                         {args: []string{"--gate-secrets=a, b.c", "--notify-allowed-networks=10.0.0.0/8", "--notify-plain-http"}},
		"series of releases without rollouts":    {args: []string{"--release-series"}, want: []string{"--release-series"}},
		"Traefiks at no port":                    {args: []string{"--routers", "--traefik-address=here"}, want: []string{"--traefik-address"}},
		"Traefiks without routers":               {args: []string{"--traefik-address=:15011"}, want: []string{"--traefik-address"}},
		"Traefiks that can be":                   {args: []string{"--routers", "--traefik-address=:15011"}},
		"series of releases":                     {args: []string{"--release-series", "--rollouts"}},
		"what every server checks":               {args: []string{"--log-format=xml", "--namespace=A"}, want: []string{"--log-format", "--namespace"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var x XDS
			fs := flag.NewFlagSet("t", flag.ContinueOnError)
			x.AddFlags(fs)
			if err := fs.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range x.Validate() {
				got = append(got, e.Field)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, slices.Compact(got)); diff != "" {
				t.Errorf("fields (-want +got)\n%s", diff)
			}
			if fs.Lookup("redis-address") != nil {
				t.Error("it takes flags of Redis, which it does not use")
			}
		})
	}
}
