// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
)

// buckets opens the scheme s3, with a client that doubts answers.
func buckets() *blob.URLMux {
	var mux blob.URLMux
	mux.RegisterBucket(s3blob.Scheme, opener{})
	return &mux
}

type opener struct{}

// OpenBucketURL implements blob.BucketURLOpener.
func (opener) OpenBucketURL(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	var byURL s3blob.URLOpener
	b, err := byURL.OpenBucketURL(ctx, u)
	if err != nil {
		return nil, err
	}
	var client *s3.Client
	known := b.As(&client)
	if err := b.Close(); err != nil || !known {
		return nil, errors.Join(errors.New("the bucket has no client of S3"), err)
	}
	return s3blob.OpenBucket(ctx, s3.New(client.Options(), s3.WithAPIOptions(doubtAnswers)), u.Host, &byURL.Options)
}

// doubtAnswers fails a request whose successful answer does not come from a server of
// S3: a captive portal or a proxy answers any request with a page and the status 200. The
// SDK reads such a page as an empty list.
func doubtAnswers(stack *middleware.Stack) error {
	doubt := func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleDeserialize(ctx, in)
		if err == nil {
			err = foreign(out)
		}
		return out, metadata, err
	}
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("DoubtAnswers", doubt), middleware.Before)
}

// foreign returns why an answer comes from no server of S3, or nil.
func foreign(out middleware.DeserializeOutput) error {
	if list, ok := out.Result.(*s3.ListObjectsV2Output); ok && list.Name == nil {
		return errors.New("the answer is no list of objects: another server answered in the place of the store")
	}
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if !ok {
		return nil
	}
	switch kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind {
	case "text/html", "application/xhtml+xml":
		err := fmt.Errorf("the answer is of the type %s: another server answered in the place of the store", kind)
		return errors.Join(err, response.Body.Close())
	}
	return nil
}
