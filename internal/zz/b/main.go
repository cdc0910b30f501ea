package main
import ("context";"github.com/authmount/auth";"github.com/authmount/auth/memstore";"github.com/authmount/auth/passkey")
func main(){ a,_:=auth.New(context.Background(), memstore.New(), auth.WithPasskeys(passkey.New(passkey.Options{}))); _=a }
