//go:build unix

package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/lifecycle"

	"github.com/strandline/strandline/internal/realstore"
	"github.com/strandline/strandline/objstore"
	"github.com/strandline/strandline/objstore/doctor"
	"github.com/strandline/strandline/objstore/faultstore"
	"github.com/strandline/strandline/objstore/miniostore"
	"github.com/strandline/strandline/objstore/s3store"
)

func TestMain(m *testing.M) { os.Exit(realstore.Main(m)) }

// TestReal: both servers pass through both drivers, under a prefix and without.
func TestReal(t *testing.T) {
	for name, server := range map[string]func(testing.TB) *realstore.Server{
		"minio": realstore.Minio, "versitygw": realstore.Versitygw,
	} {
		for driver, open := range map[string]func(*testing.T, *realstore.Server, string, string) objstore.Driver{
			"miniostore": openMinio, "s3store": openS3,
		} {
			for _, space := range []string{"", "tier"} {
				t.Run(name+"/"+driver+"/"+space, func(t *testing.T) {
					t.Parallel()
					d := open(t, server(t), server(t).NewBucket(t), space)
					r := mustRun(t, d)
					healthy(t, r)
					empty(t, d)
					for _, check := range []string{"create-once-race", "complete-race", "replace-absent", "checksum", "range-copy-small", "unequal-parts", "clock-close"} {
						if res, _ := r.Find(check); res.Outcome != doctor.OK {
							t.Errorf("%s is %s: %s", check, res.Outcome, res.Detail)
						}
					}
					t.Logf("%d requests in %v", r.Total(), r.Took)
					quick, err := doctor.Quick(t.Context(), d, opts)
					if err != nil || len(quick.Refused()) > 0 {
						t.Errorf("%v, a start refuses %+v", err, quick.Refused())
					}
					empty(t, d)
					t.Logf("quick: %d requests in %v", quick.Total(), quick.Took)
				})
			}
		}
	}
}

// TestRealInterrupt: Ctrl-C while a request is on its way.
func TestRealInterrupt(t *testing.T) {
	for name, server := range map[string]func(testing.TB) *realstore.Server{
		"minio": realstore.Minio, "versitygw": realstore.Versitygw,
	} {
		for _, n := range []int{3, 10, 30, 60, 100, 150, 200, 250} {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				t.Parallel()
				s := server(t)
				real := openS3(t, s, s.NewBucket(t), "")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				d := faultstore.Wrap(real, func(c faultstore.Call) faultstore.Fault {
					if c.N == n {
						return faultstore.Fault{Before: func() { go cancel() }}
					}
					return faultstore.Fault{}
				})
				r, err := doctor.Run(ctx, d, opts)
				if err == nil || len(r.Left) > 0 {
					t.Errorf("%v, left %v", err, r.Left)
				}
				empty(t, real)
			})
		}
	}
}

func openMinio(t *testing.T, s *realstore.Server, bucket, space string) objstore.Driver {
	t.Helper()
	d, err := miniostore.Open(t.Context(), miniostore.Config{
		Endpoint: s.Endpoint, Bucket: bucket, Prefix: space, PathStyle: true, AccessKey: s.AccessKey, SecretKey: s.SecretKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, d)
}

func openS3(t *testing.T, s *realstore.Server, bucket, space string) objstore.Driver {
	t.Helper()
	d, err := s3store.Open(t.Context(), s3store.Config{
		Endpoint: "http://" + s.Endpoint, Bucket: bucket, Prefix: space, PathStyle: true, AccessKey: s.AccessKey, SecretKey: s.SecretKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, d)
}

func closing(t *testing.T, d objstore.Driver) objstore.Driver {
	t.Helper()
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestRealSettings: what a bucket's owner set on a real server is read through both
// drivers, and is in the way.
func TestRealSettings(t *testing.T) {
	s := realstore.Minio(t)
	owner, err := minio.New(s.Endpoint, &minio.Options{Creds: credentials.NewStaticV4(s.AccessKey, s.SecretKey, "")})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		set    func(ctx context.Context, bucket string) error
		space  string
		refuse []string // by the long form
		start  []string // by a start
	}{
		"plain": {set: func(context.Context, string) error { return nil }},
		"versioned": {
			set:    owner.EnableVersioning,
			refuse: []string{"versioning"}, start: []string{"versioning"},
		},
		"suspended": {
			set:    owner.SuspendVersioning,
			refuse: []string{"versioning"}, start: []string{"versioning"},
		},
		"expiry": {
			set: func(ctx context.Context, b string) error {
				return owner.SetBucketLifecycle(ctx, b, expiring("tier/obj/"))
			},
			space:  "tier",
			refuse: []string{"lifecycle-expiry"},
		},
		"expiry of a neighbour": {
			set:   func(ctx context.Context, b string) error { return owner.SetBucketLifecycle(ctx, b, expiring("tier2/")) },
			space: "tier",
		},
	} {
		for driver, open := range map[string]func(*testing.T, *realstore.Server, string, string) objstore.Driver{
			"miniostore": openMinio, "s3store": openS3,
		} {
			t.Run(name+"/"+driver, func(t *testing.T) {
				t.Parallel()
				bucket := s.NewBucket(t)
				if err := c.set(t.Context(), bucket); err != nil {
					t.Fatal(err)
				}
				d := open(t, s, bucket, c.space)
				quick, err := doctor.Quick(t.Context(), d, opts)
				if err != nil {
					t.Fatal(err)
				}
				refuses(t, quick, c.start)
				refuses(t, mustRun(t, d), c.refuse)
			})
		}
	}
}

// TestRealLock: a bucket made with an object lock.
func TestRealLock(t *testing.T) {
	s := realstore.Minio(t)
	owner, err := minio.New(s.Endpoint, &minio.Options{Creds: credentials.NewStaticV4(s.AccessKey, s.SecretKey, "")})
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.MakeBucket(t.Context(), "locked", minio.MakeBucketOptions{ObjectLocking: true}); err != nil {
		t.Fatal(err)
	}
	for driver, open := range map[string]func(*testing.T, *realstore.Server, string, string) objstore.Driver{
		"miniostore": openMinio, "s3store": openS3,
	} {
		t.Run(driver, func(t *testing.T) {
			quick, err := doctor.Quick(t.Context(), open(t, s, "locked", driver), opts)
			if err != nil {
				t.Fatal(err)
			}
			refuses(t, quick, []string{"versioning", "object-lock"})
		})
	}
}

func refuses(t *testing.T, r doctor.Report, want []string) {
	t.Helper()
	var got []string
	for _, res := range r.Refused() {
		got = append(got, res.Check)
	}
	if !slices.Equal(got, want) {
		t.Errorf("refused: %v, want %v", got, want)
	}
	for _, check := range []string{"versioning", "object-lock", "lifecycle-expiry"} {
		if res, _ := r.Find(check); res.Outcome != doctor.OK && !slices.Contains(want, check) && check != "lifecycle-expiry" {
			t.Errorf("%s is %s: %s", check, res.Outcome, res.Detail)
		}
	}
}

func expiring(prefix string) *lifecycle.Configuration {
	return &lifecycle.Configuration{Rules: []lifecycle.Rule{{
		ID: "tidy", Status: "Enabled", RuleFilter: lifecycle.Filter{Prefix: prefix}, Expiration: lifecycle.Expiration{Days: 30},
	}}}
}

// TestRealPermissions: with temporary credentials that lack one action each, a real server
// denies it, and the doctor names it.
func TestRealPermissions(t *testing.T) {
	s := realstore.Minio(t)
	for _, action := range []string{
		"s3:PutObject", "s3:GetObject", "s3:ListBucket", "s3:DeleteObject", "s3:AbortMultipartUpload",
		"s3:ListBucketMultipartUploads", "s3:GetBucketVersioning", "s3:GetBucketObjectLockConfiguration", "s3:GetLifecycleConfiguration",
	} {
		t.Run(action, func(t *testing.T) {
			bucket := s.NewBucket(t)
			open := func() (objstore.Driver, error) {
				return miniostore.Open(t.Context(), miniostore.Config{Endpoint: s.Endpoint, Bucket: bucket, PathStyle: true})
			}
			lackOne(t, s, action)
			d, err := open()
			if action == "s3:ListBucket" {
				if !errors.Is(err, objstore.ErrDenied) {
					t.Errorf("opened: %v", err)
				}
				return // a bucket that cannot be listed is not opened at all
			}
			if err != nil {
				t.Fatal(err)
			}
			r := mustRun(t, closing(t, d))
			for _, res := range r.Results {
				permission := strings.HasPrefix(res.Check, "s3:")
				if permission && (res.Outcome == doctor.Denied) != (res.Check == action) {
					t.Errorf("%s is %s: %s", res.Check, res.Outcome, res.Detail)
				}
				if res.Outcome == doctor.Denied && !permission && !slices.Contains(res.Permissions, action) {
					t.Errorf("%s is denied, and does not name %s: %s", res.Check, action, res.Detail)
				}
			}
		})
	}
}

// lackOne puts credentials into the environment that may do all but one action.
func lackOne(t *testing.T, s *realstore.Server, action string) {
	t.Helper()
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":["s3:*"],"Resource":["arn:aws:s3:::*"]},
		{"Effect":"Deny","Action":[%q],"Resource":["arn:aws:s3:::*"]}]}`, action)
	sts, err := credentials.NewSTSAssumeRole(s.URL, credentials.STSAssumeRoleOptions{
		AccessKey: s.AccessKey, SecretKey: s.SecretKey, Policy: policy, DurationSeconds: 3600,
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := sts.GetWithContext(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", got.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", got.SecretAccessKey)
	t.Setenv("AWS_SESSION_TOKEN", got.SessionToken)
}
