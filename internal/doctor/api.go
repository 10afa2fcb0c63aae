// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/x509"
	"fmt"
	"net"
	"strings"
)

const (
	// APIName is that of the Deployment, the Service and the account of the REST API.
	APIName = "plumbline-api"
	// APIComponent is the label of its pods.
	APIComponent = "api"
	// APISecret has its certificate.
	APISecret = "plumbline-api-tls"
	// APIAuthority is the ConfigMap with the authorities that callers trust.
	APIAuthority = "plumbline-api-ca"

	apiHostsFlag = "--api-hosts="
)

// API is the state that callers of the REST API depend on. It is read only where the API is installed.
type API struct {
	// Addresses counts the ready endpoints of the Service; absent without the Service.
	Addresses Read[int]
	// Authorities are those that are published for callers.
	Authorities Read[[]*x509.Certificate]
	Certificate Read[Certificate]
	Audience    Read[Audience]
	// Issuer is the issuer that the discovery document of the configured one names.
	Issuer Read[string]
	// Trusted is the issuer that the flags of the API server name; absent if they name none.
	Trusted Read[TrustedIssuer]
}

// Audience tells how the API server takes tokens for the REST API alone.
type Audience struct {
	// Accepted tells whether it knows them by their audience, and AsOwn whether it takes them for itself.
	Accepted, AsOwn bool
}

// HasAPI tells whether the REST API is installed.
func (s *Snapshot) HasAPI() ReadState { return s.hasWorkload(APIName) }

// withAPI asks where the REST API is installed, and says so where it is not.
func withAPI(what string, run func(*Snapshot) []Finding) func(*Snapshot) []Finding {
	return withPart((*Snapshot).HasAPI, "the REST API is not enabled", what, run)
}

const apiFix = "kubectl logs -n plumbline-system -l app.kubernetes.io/component=api --tail=200\n" +
	"with api.tls.mode CertManager:\nkubectl describe certificate plumbline-api -n plumbline-system"

// checkAPIEndpoints finds a Service that leads callers to no replica.
func checkAPIEndpoints(s *Snapshot) []Finding {
	f := Finding{Severity: Warning, Object: "Service/" + s.Namespace + "/" + APIName}
	switch at := s.API.Addresses; {
	case !at.known():
		return []Finding{at.unknown("whether callers find a replica of the REST API")}
	case !at.present():
		f.Message, f.Fix = "it does not exist: callers do not find the REST API", reinstallFix
	case at.Value == 0:
		f.Message, f.Fix = "it has no ready endpoint: callers are not answered", apiFix
	default:
		return nil
	}
	return []Finding{f}
}

// checkAPIAuthority finds out whether callers can verify the certificate by the authorities that are published for them.
func checkAPIAuthority(s *Snapshot) []Finding {
	const what = "whether callers can verify the certificate of the REST API"
	f := Finding{Severity: Warning, Object: "ConfigMap/" + s.Namespace + "/" + APIAuthority, Fix: apiFix}
	switch {
	case !s.API.Authorities.known():
		return []Finding{s.API.Authorities.unknown(what)}
	case !s.API.Authorities.present():
		f.Message = "it does not exist or has no ca.crt: callers cannot verify the certificate of the REST API"
		return []Finding{f}
	case !s.API.Certificate.known():
		return []Finding{s.API.Certificate.unknown(what)}
	case !s.API.Certificate.present():
		return []Finding{apiWithoutCertificate(s)}
	}
	roots := x509.NewCertPool()
	for _, authority := range s.API.Authorities.Value {
		roots.AddCert(authority)
	}
	if _, err := s.API.Certificate.Value.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: s.Now}); err != nil {
		f.Message = fmt.Sprintf("its ca.crt does not vouch for the certificate in Secret %s: %v", APISecret, err)
		return []Finding{f}
	}
	return nil
}

func apiWithoutCertificate(s *Snapshot) Finding {
	return Finding{Severity: Warning, Object: "Secret/" + s.Namespace + "/" + APISecret, Fix: apiFix,
		Message: "it does not exist or holds no certificate: the REST API cannot serve"}
}

// checkAPIHosts finds hosts that are served without a certificate.
func checkAPIHosts(s *Snapshot) []Finding {
	switch {
	case !s.API.Certificate.known():
		return []Finding{s.API.Certificate.unknown("whether the certificate of the REST API names all hosts")}
	case !s.API.Certificate.present():
		return []Finding{apiWithoutCertificate(s)}
	}
	var out []Finding
	for _, host := range s.apiHosts() {
		if err := s.API.Certificate.Value.Leaf.VerifyHostname(host); err != nil {
			out = append(out, Finding{Severity: Warning, Object: "Secret/" + s.Namespace + "/" + APISecret, Fix: apiFix,
				Message: fmt.Sprintf("no certificate covers the host %s: its callers do not trust the REST API", host)})
		}
	}
	return out
}

// apiHosts are the names of the hosts that the REST API serves: that of its Service, and those of the chart.
func (s *Snapshot) apiHosts() []string {
	hosts := []string{APIName + "." + s.Namespace + ".svc"}
	for _, w := range s.Workloads.Value {
		if w.Name != APIName {
			continue
		}
		for _, argument := range w.Args {
			list, is := strings.CutPrefix(argument, apiHostsFlag)
			if !is {
				continue
			}
			for host := range strings.SplitSeq(list, ",") {
				if name, _, err := net.SplitHostPort(host); err == nil {
					host = name
				}
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}

// checkAPIAudience finds out whether tokens for the REST API alone read, and cannot write.
func checkAPIAudience(s *Snapshot) []Finding {
	f := Finding{Object: "ServiceAccount/" + s.Namespace + "/" + APIName}
	switch audience := s.API.Audience; {
	case !audience.known():
		return []Finding{audience.unknown("how the API server takes tokens for the REST API alone")}
	case !audience.present():
		f.Severity, f.Message, f.Fix = Critical, "it does not exist: the REST API cannot run", reinstallFix
	case audience.Value.AsOwn:
		f.Severity, f.Message = Critical, "the API server takes tokens with the audience plumbline-api for its own: a token that should read alone can write"
		f.Fix = "take plumbline-api out of --api-audiences of the API server"
	case !audience.Value.Accepted:
		f.Severity, f.Message = Warning, "the API server does not accept the audience plumbline-api: callers with such a token are refused"
		f.Fix = "let the authenticator of service accounts accept each audience, or give callers tokens of the API server's own audience"
	default:
		return nil
	}
	return []Finding{f}
}
