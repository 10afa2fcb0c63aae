// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"
)

const (
	apiIssuerFlag = "--api-oidc-issuer="
	apiClientFlag = "--api-oidc-client-id="

	serverIssuerFlag = "--oidc-issuer-url="
	serverClientFlag = "--oidc-client-id="
	serverFileFlag   = "--authentication-config="
)

// TrustedIssuer is an issuer whose ID tokens the API server takes, with the client of the tokens.
type TrustedIssuer struct{ URL, Client string }

// APIIssuer is the issuer at which users of browsers log in; empty if there is none.
func (s *Snapshot) APIIssuer() string { return s.apiArgument(apiIssuerFlag) }

// apiArgument returns the value of a flag of the REST API; empty if the flag is not set.
func (s *Snapshot) apiArgument(flag string) string {
	for _, w := range s.Workloads.Value {
		if w.Name == APIName {
			return argumentOf(w.Args, flag)
		}
	}
	return ""
}

// argumentOf returns the last value of a flag, which is the one that counts.
func argumentOf(arguments []string, flag string) (value string) {
	for _, argument := range arguments {
		if text, is := strings.CutPrefix(argument, flag); is {
			value = text
		}
	}
	return value
}

// ParseTrustedIssuer reads the flags of the API servers. It is absent where the flags name no issuer, and unknown where an API
// server reads its issuers from a file, or where two of them differ.
func ParseTrustedIssuer(servers [][]string) Read[TrustedIssuer] {
	if len(servers) == 0 {
		return Read[TrustedIssuer]{Reason: "no pod of the API server is in namespace kube-system"}
	}
	first := TrustedIssuer{argumentOf(servers[0], serverIssuerFlag), argumentOf(servers[0], serverClientFlag)}
	for _, arguments := range servers {
		switch {
		case argumentOf(arguments, serverFileFlag) != "":
			return Read[TrustedIssuer]{Reason: "the API server reads its issuers from a file"}
		case argumentOf(arguments, serverIssuerFlag) != first.URL, argumentOf(arguments, serverClientFlag) != first.Client:
			return Read[TrustedIssuer]{Reason: "the API servers have different flags"}
		}
	}
	if first.URL == "" {
		return Gone[TrustedIssuer]()
	}
	return Got(first)
}

// checkAPIIssuer finds out whether users of browsers can log in at the issuer.
func checkAPIIssuer(s *Snapshot) []Finding {
	issuer := s.APIIssuer()
	if issuer == "" {
		return []Finding{{Severity: OK, Message: "the REST API has no issuer of OpenID Connect"}}
	}
	return append(s.checkIssuerDocument(issuer), s.checkIssuerTrust(issuer)...)
}

func (s *Snapshot) checkIssuerDocument(issuer string) []Finding {
	f := Finding{Severity: Warning, Object: "Deployment/" + s.Namespace + "/" + APIName, Fix: "set api.oidc.issuer to the issuer that the discovery document names, letter by letter"}
	switch document := s.API.Issuer; {
	case !document.known():
		return []Finding{document.unknown("whether the issuer " + issuer + " answers, asked from this machine")}
	case !document.present():
		f.Message = fmt.Sprintf("the issuer %s has no discovery document: no user of a browser can log in", issuer)
	case document.Value != issuer:
		f.Message = fmt.Sprintf("the discovery document of %s names the issuer %s: each ID token is refused", issuer, document.Value)
	default:
		return nil
	}
	return []Finding{f}
}

func (s *Snapshot) checkIssuerTrust(issuer string) []Finding {
	f := Finding{Severity: Warning, Object: "Deployment/" + s.Namespace + "/" + APIName, Fix: "add the issuer, with the client as an audience, to the authentication configuration of the API server"}
	client := s.apiArgument(apiClientFlag)
	switch trusted := s.API.Trusted; {
	case !trusted.known():
		return []Finding{trusted.unknown("whether the API server takes ID tokens of " + issuer)}
	case !trusted.present():
		f.Message = fmt.Sprintf("the API server trusts no issuer: it takes no ID token of %s", issuer)
	case trusted.Value.URL != issuer:
		f.Message = fmt.Sprintf("the API server trusts the issuer %s: it takes no ID token of %s", trusted.Value.URL, issuer)
	case trusted.Value.Client != client:
		f.Message = fmt.Sprintf("the API server takes ID tokens of the client %s: it takes none of the client %s", trusted.Value.Client, client)
	default:
		return nil
	}
	return []Finding{f}
}
