// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// config is what the environment says.
type config struct {
	Name, Version, Address, Upstream string
	Visit                            visitConfig
}

// visitConfig says what is ordered elsewhere; without a URL nothing is.
type visitConfig struct {
	URL     string
	Rate    int
	Users   int
	Cookies bool
	Header  string
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
	}{{"SHOP_VISIT_RATE", &c.Visit.Rate, 1, 20}, {"SHOP_VISIT_USERS", &c.Visit.Users, 0, 0}} {
		text := cmp.Or(getenv(number.name), strconv.Itoa(number.def))
		n, err := strconv.Atoi(text)
		if err != nil || n < number.low || n > 10_000 {
			return config{}, fmt.Errorf("%s is %q, want a number from %d to 10000", number.name, text, number.low)
		}
		*number.into = n
	}
	return c, nil
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
