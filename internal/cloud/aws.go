package cloud

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// AWS is an identity in AWS. Without AccessKeyID, WebIdentityTokenFile and Profile
// it is what the SDK's default chain finds: environment, files, web identity,
// container, instance.
type AWS struct {
	Region, Service string // that requests are signed for
	Profile         string // of the shared configuration files

	AccessKeyID, SecretAccessKey, SessionToken string

	WebIdentityTokenFile string // exchanged for RoleARN

	// RoleARN is assumed with the identity that the other fields say; "" for
	// none. SessionName is modelgate, Duration one hour unless set.
	RoleARN, ExternalID, SessionName string
	Duration                         time.Duration
}

// Format prints a placeholder for every verb: there are secrets in it.
func (*AWS) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// fetcher reads environment and files again with each fetch.
func (a *AWS) fetcher(transport *http.Transport) fetcher {
	// A client of the SDK's own, because AWS_CA_BUNDLE may add to it.
	client := awshttp.NewBuildableClient().WithTimeout(maxWait).WithTransportOptions(func(t *http.Transport) {
		t.Proxy, t.DialContext, t.TLSClientConfig, t.DisableKeepAlives = transport.Proxy, transport.DialContext, transport.TLSClientConfig.Clone(), true
		t.ForceAttemptHTTP2 = false
	})
	return func(ctx context.Context) (*credential, error) {
		source, err := a.source(ctx, client)
		if err != nil {
			return nil, err
		}
		keys, err := source.Retrieve(ctx)
		if err != nil {
			return nil, err
		}
		c := &credential{keys: keys, source: keys.Source}
		if keys.CanExpire {
			c.expires = keys.Expires
		}
		return c, nil
	}
}

func (a *AWS) source(ctx context.Context, client *awshttp.BuildableClient) (aws.CredentialsProvider, error) {
	options := []func(*config.LoadOptions) error{
		config.WithRegion(a.Region), config.WithHTTPClient(client), config.WithRetryMaxAttempts(1),
	}
	if a.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(a.Profile))
	}
	if a.AccessKeyID != "" {
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(a.AccessKeyID, a.SecretAccessKey, a.SessionToken)))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, err
	}
	session := cmp.Or(a.SessionName, "modelgate")
	switch {
	case a.WebIdentityTokenFile != "":
		file := stscreds.IdentityTokenFile(a.WebIdentityTokenFile)
		return stscreds.NewWebIdentityRoleProvider(sts.NewFromConfig(cfg), a.RoleARN, file, func(o *stscreds.WebIdentityRoleOptions) {
			o.RoleSessionName, o.Duration = session, a.Duration
		}), nil
	case a.RoleARN != "":
		return stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), a.RoleARN, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName, o.Duration = session, a.Duration
			if a.ExternalID != "" {
				o.ExternalID = aws.String(a.ExternalID)
			}
		}), nil
	}
	return cfg.Credentials, nil
}
