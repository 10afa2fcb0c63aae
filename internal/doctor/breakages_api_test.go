// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/x509"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const testIssuer = "https://id.example.com/realm"

// serving adds a REST API with two hosts to an installation.
func serving(t *testing.T, s *Snapshot) {
	t.Helper()
	s.Workloads.Value = append(slices.Clone(s.Workloads.Value), Workload{
		Name: APIName, Component: "api", Version: s.Workloads.Value[0].Version, Desired: 2, Ready: 2,
		Args: []string{"--role=serve", apiHostsFlag + "plumbline.example.com,plumbline.example.com:8443", apiIssuerFlag + testIssuer, apiClientFlag + "plumbline"},
	})
	for _, name := range []string{"plumbline-api-1", "plumbline-api-2"} {
		s.Pods.Value = append(slices.Clone(s.Pods.Value), Pod{Name: name, Component: APIComponent, Version: s.Workloads.Value[0].Version, Ready: true, Skew: Got(time.Second)})
	}
	s.API = API{
		Addresses: Got(2), Authorities: Got([]*x509.Certificate{healthyAuthority.certificate}),
		Certificate: Got(Certificate{Leaf: healthyAuthority.leafOf(t, testNow.Add(-24*time.Hour), testNow.Add(6*24*time.Hour), "plumbline-api.plumbline-system.svc", "plumbline.example.com")}),
		Audience:    Got(Audience{Accepted: true}),
		Issuer:      Got(testIssuer), Trusted: Got(TrustedIssuer{testIssuer, "plumbline"}),
	}
}

// served breaks an installation that has a REST API.
func served(change func(*testing.T, *Snapshot)) breakage {
	return func(t *testing.T, s *Snapshot) { serving(t, s); change(t, s) }
}

func servedBy(change func(*API)) breakage {
	return served(func(_ *testing.T, s *Snapshot) { change(&s.API) })
}

func TestAHealthyAPI_PassesEverything(t *testing.T) {
	s := healthy(t)
	serving(t, s)
	for _, f := range Examine(s).Findings {
		if f.Severity != OK {
			t.Errorf("%s: %s %s: %s", f.ID, f.Severity, f.Object, f.Message)
		}
	}
}

func apiBreakages() map[string]map[string]breakage {
	hiddenWorkloads := served(func(_ *testing.T, s *Snapshot) { hidden["workloads"](s) })
	noCertificate := servedBy(func(a *API) { a.Certificate = Gone[Certificate]() })
	hiddenCertificate := servedBy(func(a *API) { a.Certificate = forbidden[Certificate]("get secrets") })
	return map[string]map[string]breakage{
		"api.endpoints": {
			"no replica is ready":      servedBy(func(a *API) { a.Addresses = Got(0) }),
			"the Service was deleted":  servedBy(func(a *API) { a.Addresses = Gone[int]() }),
			"endpoints are hidden":     servedBy(func(a *API) { a.Addresses = forbidden[int]("list endpointslices") }),
			"there is no REST API":     on(func(*Snapshot) {}),
			"Deployments are hidden":   hiddenWorkloads,
			"a replica of two is left": servedBy(func(a *API) { a.Addresses = Got(1) }),
		},
		"api.authority": {
			"the ConfigMap is empty":  servedBy(func(a *API) { a.Authorities = Gone[[]*x509.Certificate]() }),
			"the ConfigMap is hidden": servedBy(func(a *API) { a.Authorities = forbidden[[]*x509.Certificate]("get configmaps") }),
			"another authority": served(func(t *testing.T, s *Snapshot) {
				s.API.Authorities = Got([]*x509.Certificate{newAuthority(t).certificate})
			}),
			"there is no certificate":     noCertificate,
			"the certificate is hidden":   hiddenCertificate,
			"the certificate has expired": served(func(_ *testing.T, s *Snapshot) { s.Now = s.Now.Add(7 * 24 * time.Hour) }),
			"one authority after another": served(func(t *testing.T, s *Snapshot) {
				s.API.Authorities.Value = append(s.API.Authorities.Value, newAuthority(t).certificate)
			}),
			"there is no REST API":           on(func(*Snapshot) {}),
			"the Deployments cannot be read": hiddenWorkloads,
		},
		"api.hosts": {
			"a host is not in the certificate": served(func(t *testing.T, s *Snapshot) {
				s.API.Certificate = Got(Certificate{Leaf: healthyAuthority.leafOf(t, testNow.Add(-time.Hour), testNow.Add(time.Hour), "plumbline-api.plumbline-system.svc")})
			}),
			"the Service is not in the certificate": served(func(t *testing.T, s *Snapshot) {
				s.API.Certificate = Got(Certificate{Leaf: healthyAuthority.leafOf(t, testNow.Add(-time.Hour), testNow.Add(time.Hour), "*.example.com")})
			}),
			"there is no certificate":   noCertificate,
			"the certificate is hidden": hiddenCertificate,
			"there is no REST API":      on(func(*Snapshot) {}),
		},
		"api.audience": {
			"the API server takes it for its own": servedBy(func(a *API) { a.Audience = Got(Audience{Accepted: true, AsOwn: true}) }),
			"the API server refuses it":           servedBy(func(a *API) { a.Audience = Got(Audience{}) }),
			"the account was deleted":             servedBy(func(a *API) { a.Audience = Gone[Audience]() }),
			"no token may be asked for":           servedBy(func(a *API) { a.Audience = forbidden[Audience]("create serviceaccounts/token") }),
			"no probe":                            servedBy(func(a *API) { a.Audience = Read[Audience]{} }),
			"there is no REST API":                on(func(*Snapshot) {}),
		},
		"api.issuer": issuerBreakages(hiddenWorkloads),
		"api.clock":  clockBreakages(hiddenWorkloads),
	}
}

func issuerBreakages(hiddenWorkloads breakage) map[string]breakage {
	trusting := func(url, client string) breakage {
		return servedBy(func(a *API) { a.Trusted = Got(TrustedIssuer{url, client}) })
	}
	return map[string]breakage{
		"another issuer in the document":       servedBy(func(a *API) { a.Issuer = Got(testIssuer + "/") }),
		"no document":                          servedBy(func(a *API) { a.Issuer = Gone[string]() }),
		"the issuer does not answer":           servedBy(func(a *API) { a.Issuer = Read[string]{Reason: "dial tcp: connection refused"} }),
		"no probe":                             servedBy(func(a *API) { a.Issuer = Read[string]{} }),
		"the API server trusts no issuer":      servedBy(func(a *API) { a.Trusted = Gone[TrustedIssuer]() }),
		"the API server trusts another issuer": trusting("https://other.example.com", "plumbline"),
		"the API server trusts another client": trusting(testIssuer, "kubernetes"),
		"the flags are not to be seen":         servedBy(func(a *API) { a.Trusted = ParseTrustedIssuer(nil) }),
		"pods of the system are hidden":        servedBy(func(a *API) { a.Trusted = forbidden[TrustedIssuer]("list pods in namespace kube-system") }),
		"there is no issuer": served(func(_ *testing.T, s *Snapshot) {
			s.Workloads.Value[len(s.Workloads.Value)-1].Args = []string{"--role=serve"}
		}),
		"there is no REST API":           on(func(*Snapshot) {}),
		"the Deployments cannot be read": hiddenWorkloads,
	}
}

func clockBreakages(hiddenWorkloads breakage) map[string]breakage {
	skewed := func(skew Read[time.Duration]) breakage {
		return served(func(_ *testing.T, s *Snapshot) { s.Pods.Value[len(s.Pods.Value)-1].Skew = skew })
	}
	return map[string]breakage{
		"a clock is behind":              skewed(Got(-2 * time.Minute)),
		"a clock is ahead":               skewed(Got(maxSkew + time.Second)),
		"a clock is nearly right":        skewed(Got(maxSkew)),
		"pods may not be asked":          skewed(forbidden[time.Duration]("get pods/proxy in namespace plumbline-system")),
		"a pod does not answer":          skewed(Read[time.Duration]{Reason: "the answer is 503 Service Unavailable"}),
		"pods are hidden":                served(func(_ *testing.T, s *Snapshot) { hidden["pods"](s) }),
		"there is no REST API":           on(func(*Snapshot) {}),
		"the Deployments cannot be read": hiddenWorkloads,
		"no replica of the API is ready": served(func(_ *testing.T, s *Snapshot) {
			for i := range s.Pods.Value {
				s.Pods.Value[i].Ready = s.Pods.Value[i].Component != APIComponent
			}
		}),
	}
}

func TestTheTrustedIssuerIsReadFromFlags(t *testing.T) {
	flags := []string{"kube-apiserver", serverIssuerFlag + testIssuer, serverClientFlag + "plumbline"}
	for name, tc := range map[string]struct {
		servers [][]string
		want    Read[TrustedIssuer]
	}{
		"two API servers that agree": {[][]string{flags, flags}, Got(TrustedIssuer{testIssuer, "plumbline"})},
		"no issuer":                  {[][]string{{"kube-apiserver"}}, Gone[TrustedIssuer]()},
		"a file":                     {[][]string{append(slices.Clone(flags), serverFileFlag+"/etc/a.yaml")}, Read[TrustedIssuer]{Reason: "the API server reads its issuers from a file"}},
		"two that differ":            {[][]string{flags, flags[:2]}, Read[TrustedIssuer]{Reason: "the API servers have different flags"}},
		"no pod":                     {nil, Read[TrustedIssuer]{Reason: "no pod of the API server is in namespace kube-system"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ParseTrustedIssuer(tc.servers)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
