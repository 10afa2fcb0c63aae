// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"errors"
	"fmt"
	"net"
	"net/http"
)

// errPlainHTTP says that Egress does not permit a URL without TLS.
var errPlainHTTP = errors.New("plain http is not permitted; use https, or set notifications.plainHTTP in the values of the chart")

// NewReader returns a client that reads from programs which the platform team names. The client keeps to the rules of
// egress for addresses and TLS, and follows no redirect. The caller bounds the size of answers.
func NewReader(egress Egress) *http.Client {
	dialer := net.Dialer{Control: egress.control}
	return &http.Client{
		Transport: permitted{egress, &http.Transport{
			Proxy:       nil, // the check of addresses would see the proxy's alone
			DialContext: dialer.DialContext, DisableCompression: true, MaxResponseHeaderBytes: maxResponseHeader, MaxIdleConnsPerHost: 2,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// permitted refuses requests without TLS where egress does.
type permitted struct {
	egress Egress
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (p permitted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !p.egress.PlainHTTP {
		return nil, errPlainHTTP
	}
	response, err := p.next.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	return response, nil
}
