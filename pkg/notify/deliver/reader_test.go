// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestAReaderKeepsToTheRulesOfEgress(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/api", answering(200, "an answer"))
	mux.Handle("/moved", http.RedirectHandler("/api", http.StatusFound))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	here := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for name, tc := range map[string]struct {
		egress  Egress
		path    string
		status  int
		refused string
	}{
		"a permitted address":         {Egress{PlainHTTP: true, Allowed: here}, "/api", 200, ""},
		"an address that is private":  {Egress{PlainHTTP: true}, "/api", 0, errAddressRefused.Error()},
		"an address without TLS":      {Egress{Allowed: here}, "/api", 0, "plain http is not permitted"},
		"a redirect, which stays one": {Egress{PlainHTTP: true, Allowed: here}, "/moved", 302, ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := NewReader(tc.egress)
			t.Cleanup(client.CloseIdleConnections)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+tc.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err != nil {
				if tc.refused == "" || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("the error is %v, want %q", err, tc.refused)
				}
				return
			}
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
			if tc.refused != "" || response.StatusCode != tc.status {
				t.Errorf("the status is %d, want %d or the error %q", response.StatusCode, tc.status, tc.refused)
			}
		})
	}
}
