package pgstore

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/*.sql anew")

// The statements that are composed of shared parts are in testdata, as they are sent.
func TestStatementsAsSent(t *testing.T) {
	for name, sql := range map[string]string{
		"advance_many": advanceMany, "advance_one": advanceOne,
		"login":         "-- Credentials, by the address\n" + credentials + byEmail + ";\n\n-- CreateSession, after the password was right\n" + createSession + ";",
		"login_telling": createSessionTelling,
		"insert_user":   insertUser, "lock_users": lockUsers, "patch_user": patchUser, "put_token": putToken, "read_many": readMany, "redeem": redeem, "try_code": tryCode,
	} {
		file := filepath.Join("testdata", name+".sql")
		if *update {
			if err := os.WriteFile(file, []byte(sql+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := sql + "\n"; got != string(want) {
			t.Errorf("%s is not what is sent; if that is meant to be so, run go test ./pgstore -run TestStatementsAsSent -update:\n%s", file, got)
		}
	}
}
