// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/sendonce"
)

const (
	// pace of a client: a request begins so often, whether or not the one before has its answer.
	pace = 25 * time.Millisecond
	// userHeader names the user of a request.
	userHeader = "X-User"
	// variationHeader names who has answered.
	variationHeader = "Variation"
)

// customers are an open loop of requests to one Service through one proxy. Connections are kept, and
// no request is sent twice. A user asks again when the answer to the last request is there.
type customers struct {
	judge *judge
	name  string
	http  *http.Client
	// users that wait for no answer; nil if requests have none.
	users chan string
}

// newCustomers connect to the listener of a sidecar for redirected connections.
func newCustomers(j *judge, name, outbound, service string, http2 bool, users int) *customers {
	transport := &http.Transport{
		Protocols: &http.Protocols{}, MaxIdleConnsPerHost: 100,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return envoy.DialCaptured(ctx, outbound, service)
		},
	}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetUnencryptedHTTP2(http2)
	c := &customers{judge: j, name: name, http: &http.Client{Transport: transport, Timeout: patience}}
	if users > 0 {
		c.users = make(chan string, users)
		for i := range users {
			c.users <- fmt.Sprint(name, "-", i)
		}
	}
	return c
}

// run asks until ctx is done, and waits until each request has its answer.
func (c *customers) run(ctx context.Context) {
	defer c.http.CloseIdleConnections()
	var asking sync.WaitGroup
	defer asking.Wait()
	ticks := time.NewTicker(pace)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		if c.users == nil {
			asking.Go(func() { c.ask(context.WithoutCancel(ctx), "") })
			continue
		}
		select {
		case user := <-c.users:
			asking.Go(func() {
				c.ask(context.WithoutCancel(ctx), user)
				c.users <- user
			})
		default: // all wait for an answer
		}
	}
}

func (c *customers) ask(ctx context.Context, user string) {
	epoch, began := c.judge.begins(), time.Now()
	variation, err := c.send(ctx, user)
	c.judge.ends(epoch, c.name, user, variation, time.Since(began), err)
}

func (c *customers) send(ctx context.Context, user string) (variation string, err error) {
	const text = "what is sent comes back"
	request, err := sendonce.NewRequest(ctx, http.MethodPost, "http://web/", text)
	if err != nil {
		return "", err
	}
	if user != "" {
		request.Header.Set(userHeader, user)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err == nil && (response.StatusCode != http.StatusOK || string(body) != text) {
		err = fmt.Errorf("%s %s %q", response.Proto, response.Status, body)
	}
	return response.Header.Get(variationHeader), err
}

// echo answers with what it was sent, in the name of a variation.
func echo(variation string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(variationHeader, variation)
		_, _ = io.Copy(w, r.Body) // the client compares
	}
}
