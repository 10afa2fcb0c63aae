// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"time"
)

// orders are sent with a POST, which no client and no proxy repeats without an answer.
type orders struct {
	config  visitConfig
	clients []*http.Client // by user
}

func newOrders(c visitConfig) (*orders, error) {
	o := &orders{config: c}
	transport := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 2 * time.Second}
	for range max(1, c.Users) {
		client := &http.Client{Transport: transport, Timeout: visitTimeout}
		if c.Cookies {
			jar, err := cookiejar.New(nil)
			if err != nil {
				return nil, fmt.Errorf("making a cookie jar: %w", err)
			}
			client.Jar = jar
		}
		o.clients = append(o.clients, client)
	}
	return o, nil
}

// send orders for a user, and returns the version that answers.
func (o *orders) send(ctx context.Context, who int) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(o.config.URL, "/")+"/orders", strings.NewReader("a thing"))
	if err != nil {
		return "", err
	}
	if o.config.Users > 0 && !o.config.Cookies {
		request.Header.Set("X-User", fmt.Sprintf("user-%d", who))
	}
	o.config.header(request)
	response, err := o.clients[who].Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(string(body), spoiledText) {
		return "", fmt.Errorf("%s: %w", response.Status, errSpoiled)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %.200q", response.Status, body)
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return "", fmt.Errorf("an answer that is none: %w", err)
	}
	return a.Version, nil
}
