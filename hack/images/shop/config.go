// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// config is what the environment says.
type config struct {
	Name, Version, Address, Upstream string
	Visit                            visitConfig
	Faults                           faults
}

// visitConfig says what is ordered elsewhere; without a URL nothing is.
type visitConfig struct {
	URL     string
	Rate    int
	Users   int
	Cookies bool
	Header  string
	// CallRate and SocketRate are orders a second by gRPC and on WebSockets; 0 is none.
	CallRate, SocketRate int
}

func configFrom(getenv func(string) string, hostname func() (string, error)) (config, error) {
	host, err := hostname()
	if err != nil {
		host = "unknown"
	}
	c := config{
		Name:     cmp.Or(getenv("SHOP_NAME"), host),
		Version:  cmp.Or(getenv("SHOP_VERSION"), "dev"),
		Address:  cmp.Or(getenv("SHOP_ADDRESS"), ":8080"),
		Upstream: getenv("SHOP_UPSTREAM"),
		Visit: visitConfig{
			URL: getenv("SHOP_VISITS"), Cookies: getenv("SHOP_VISIT_COOKIES") == "true", Header: getenv("SHOP_VISIT_HEADER"),
		},
	}
	for _, number := range []struct {
		name     string
		into     *int
		low, def int
	}{
		{"SHOP_VISIT_RATE", &c.Visit.Rate, 1, 20}, {"SHOP_VISIT_USERS", &c.Visit.Users, 0, 0},
		{"SHOP_CALL_RATE", &c.Visit.CallRate, 0, 0}, {"SHOP_SOCKET_RATE", &c.Visit.SocketRate, 0, 0},
	} {
		text := cmp.Or(getenv(number.name), strconv.Itoa(number.def))
		n, err := strconv.Atoi(text)
		if err != nil || n < number.low || n > 10_000 {
			return config{}, fmt.Errorf("%s is %q, want a number from %d to 10000", number.name, text, number.low)
		}
		*number.into = n
	}
	c.Faults, err = parseFaults(getenv("SHOP_FAULTS"))
	return c, err
}

// header gives a request what all orders have. The host is no header to this library.
func (c visitConfig) header(request *http.Request) {
	name, value, found := strings.Cut(c.Header, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	switch {
	case !found:
	case strings.EqualFold(name, "host"):
		request.Host = value
	default:
		request.Header.Set(name, value)
	}
}

// target is the address of the other shop, and the host that its proxy is asked for.
func (c visitConfig) target() (address, host string, err error) {
	request := &http.Request{Header: http.Header{}}
	if request.URL, err = url.Parse(c.URL); err != nil {
		return "", "", fmt.Errorf("reading the URL of visits: %w", err)
	}
	c.header(request)
	return net.JoinHostPort(request.URL.Hostname(), cmp.Or(request.URL.Port(), "80")), cmp.Or(request.Host, request.URL.Host), nil
}
