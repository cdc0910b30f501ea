package main
import ("context";"github.com/authmount/auth";"github.com/authmount/auth/memstore")
func main(){ a,_:=auth.New(context.Background(), memstore.New()); _=a }
