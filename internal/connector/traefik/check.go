// SPDX-License-Identifier: Apache-2.0

package traefik

import (
	"errors"
	"fmt"

	"golang.org/x/net/http/httpguts"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Check returns the reasons why Traefik cannot carry a split out at the ports that it serves.
func Check(split traffic.Split, can traffic.Capabilities, served []Served) error {
	if err := split.Validate(); err != nil {
		return err
	}
	if err := can.Check(split); err != nil {
		return err
	}
	reads, found := split.Override != "" || len(split.Match.Values) > 0, false
	var errs []error
	for _, s := range served {
		if s.Service.Namespace != split.Namespace || s.Service.Name != split.Service {
			continue
		}
		found = true
		if reads && s.Route.Rule == "" {
			errs = append(errs, fmt.Errorf("port %d of Service %s has no route, and a header needs one: give the Traefik a rule of the port", s.Port, s.Service))
		}
	}
	if !found {
		errs = append(errs, fmt.Errorf("the Traefik serves no port of Service %s/%s", split.Namespace, split.Service))
	}
	return errors.Join(append(errs, checkHeaders(split))...)
}

func checkHeaders(split traffic.Split) error {
	var errs []error
	for _, header := range []string{split.Override, split.Match.Header} {
		if header != "" && !httpguts.ValidHeaderFieldName(header) {
			errs = append(errs, fmt.Errorf("%.40q is no name of a header", header))
		}
	}
	for value := range split.Match.Values {
		if value == "" || !httpguts.ValidHeaderFieldValue(value) {
			errs = append(errs, fmt.Errorf("header %s: %.40q is no value that Traefik can compare", split.Match.Header, value))
		}
	}
	return errors.Join(errs...)
}
