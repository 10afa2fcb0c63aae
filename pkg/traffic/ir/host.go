// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxHosts is how many hosts of a Service are read: whoever writes one annotation makes
// neither the routes of the gateways nor a look at the mesh longer than that.
const MaxHosts = 100

// hosts are those under which gateways serve a service. One that an older Service has
// stays with that: whoever comes later must not take its visitors away.
func (b *builder) hosts(svc *corev1.Service, s Service) []Host {
	var hosts []Host
	read := 0
	for text := range wantedHosts(svc) {
		if read++; read > MaxHosts {
			b.warn(serviceObject(svc), InvalidHost, fmt.Sprintf("gateways serve only the first %d hosts of its annotation %s: make another Service for the others", MaxHosts, HostsAnnotation))
			break
		}
		host, err := s.host(text)
		if err != nil {
			b.warn(serviceObject(svc), InvalidHost, fmt.Sprintf("gateways do not serve it as %q: %v", short(text), err))
			continue
		}
		if !b.granted(svc.Namespace, host.Name) {
			b.warn(serviceObject(svc), HostNotGranted, fmt.Sprintf("gateways do not serve it as %s, which does not belong to its namespace. Take it out of the annotation %s, or let the platform add it to gateway.hosts of the chart", host.Name, HostsAnnotation))
			continue
		}
		switch by, is := b.served[host.Name]; {
		case is && by == serviceObject(svc):
			b.warn(by, InvalidHost, fmt.Sprintf("gateways do not serve it as %q: %s is named before already", short(text), host.Name))
			continue
		case is:
			b.warn(serviceObject(svc), HostTaken, fmt.Sprintf("gateways do not serve it as %s, which belongs to %s: take it out of the annotation %s of one of them", host.Name, by, HostsAnnotation))
			continue
		}
		b.served[host.Name] = serviceObject(svc)
		hosts = append(hosts, host)
	}
	slices.SortFunc(hosts, func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	return hosts
}

// wantedHosts are the entries of the annotation, up to the first that is not read any more.
func wantedHosts(svc *corev1.Service) iter.Seq[string] {
	return func(yield func(string) bool) {
		left := MaxHosts + 1
		for text := range strings.SplitSeq(svc.Annotations[HostsAnnotation], ",") {
			text = strings.ToLower(strings.TrimSpace(text))
			if text == "" {
				continue
			}
			if left--; left < 0 || !yield(text) {
				return
			}
		}
	}
}

// host reads "name" or "name=port". Which of several HTTP ports is meant is never
// guessed, since the other one may not be for everybody.
func (s Service) host(text string) (Host, error) {
	name, number, chosen := strings.Cut(text, "=")
	if len(validation.IsDNS1123Subdomain(name)) > 0 && len(validation.IsWildcardDNS1123Subdomain(name)) > 0 {
		return Host{}, fmt.Errorf("%s takes names as shop.example.com or *.example.com", HostsAnnotation)
	}
	if !chosen {
		port, err := s.HTTPPort(0)
		return Host{name, port.Number}, err
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 {
		return Host{}, fmt.Errorf("%q is no port of it, as in %s=8080", number, name)
	}
	port, err := s.HTTPPort(uint16(n))
	return Host{name, port.Number}, err
}

// HTTPPort is the one of that number, or, for 0, the only one there is.
func (s Service) HTTPPort(number uint16) (Port, error) {
	var found []Port
	var numbers []string
	for _, p := range s.Ports {
		if p.Protocol == TCP {
			continue
		}
		numbers = append(numbers, strconv.Itoa(int(p.Number)))
		if number == 0 || p.Number == number {
			found = append(found, p)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case number == 0:
		return Port{}, fmt.Errorf("it has %d HTTP ports (%s): say which one", len(numbers), strings.Join(numbers, ", "))
	default:
		return Port{}, fmt.Errorf("it has no HTTP port %d, but %s", number, strings.Join(numbers, ", "))
	}
}
